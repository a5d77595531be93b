// The editor of the playground: CodeMirror with YAML (which JSON is a part of), problems marked at their places.
import { basicSetup, EditorView } from "codemirror";
import { yaml } from "@codemirror/lang-yaml";
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, setDiagnostics } from "@codemirror/lint";
import { Prec } from "@codemirror/state";
import { keymap } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "light-dark(#0a3069, #79b8ff)" },
  { tag: [tags.string, tags.content], color: "light-dark(#1c2128, #e6edf3)" },
  { tag: [tags.comment, tags.lineComment], color: "light-dark(#57606a, #9aa5b1)" },
  { tag: [tags.keyword, tags.typeName, tags.labelName], color: "light-dark(#9a3412, #ffb27a)" },
]);

const theme = EditorView.theme({
  "&": { height: "100%", fontSize: "0.875rem", color: "inherit", backgroundColor: "var(--panel)" },
  "&.cm-focused": { outline: "3px solid var(--link)", outlineOffset: "2px" },
  ".cm-scroller": { fontFamily: "ui-monospace, monospace", lineHeight: "1.5" },
  ".cm-content": { caretColor: "currentColor" },
  ".cm-cursor": { borderLeftColor: "currentColor" },
  ".cm-gutters": { backgroundColor: "transparent", color: "var(--quiet)", borderRight: "1px solid var(--line)" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "light-dark(#0001, #fff1)" },
  ".cm-selectionBackground, &.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground": {
    backgroundColor: "light-dark(#b6d6ff, #274a78)",
  },
  ".cm-tooltip, .cm-panels": { color: "var(--text)", backgroundColor: "var(--panel)", borderColor: "var(--line)" },
  ".cm-lintRange-error": { textDecoration: "underline wavy light-dark(#cf222e, #ff7b72)", backgroundImage: "none" },
  ".cm-lint-marker-error": { content: "normal", borderRadius: "50%", scale: "0.6", backgroundColor: "light-dark(#cf222e, #ff7b72)" },
});

// An editor inside `host`. It lives in a shadow root: there its styles are sheets made by script, which a content
// security policy without inline styles allows. `attributes` are those of the text to edit, its label among them; `changed` is
// called at every change, `entered` at Ctrl+Enter.
export function edit(host, text, attributes, changed, entered) {
  const root = host.attachShadow({ mode: "open" });
  const view = new EditorView({
    root,
    parent: root,
    doc: text,
    extensions: [
      Prec.highest(keymap.of([{ key: "Mod-Enter", run: () => entered() ?? true }])),
      basicSetup,
      yaml(),
      syntaxHighlighting(colours),
      theme,
      lintGutter(),
      EditorView.lineWrapping,
      EditorView.contentAttributes.of(attributes),
      EditorView.updateListener.of((update) => update.docChanged && changed()),
    ],
  });
  const place = ({ line, column }) => {
    const found = view.state.doc.line(Math.min(Math.max(line, 1), view.state.doc.lines));
    return Math.min(found.from + Math.max(column - 1, 0), found.to);
  };
  const marked = (problem) => {
    const from = place(problem);
    const to = view.state.wordAt(from)?.to ?? view.state.doc.lineAt(from).to;
    return { from, to: Math.max(from, to), severity: "error", message: problem.message };
  };
  return {
    text: () => view.state.doc.toString(),
    replace: (wanted) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: wanted } }),
    focus: () => view.focus(),
    show: (problems) => view.dispatch(setDiagnostics(view.state, problems.map(marked))),
    go: (problem) => {
      view.dispatch({ selection: { anchor: place(problem) }, scrollIntoView: true });
      view.focus();
    },
  };
}
