// The playground: problems in place as one types, the schedule beside the text, a link that keeps what is written.
const $ = (id) => document.getElementById(id);
const form = $("written");
const field = $("text");
const WAIT_MS = 300;

// The text, in the editor where there is one, else in the field that the page has without scripts.
let pane = {
  text: () => field.value,
  replace: (text) => (field.value = text),
  show: () => {},
  go: ({ line, column }) => {
    const before = field.value.split("\n").slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    field.focus();
    field.setSelectionRange(before + column - 1, before + column - 1);
  },
};

async function upgrade() {
  if (!form.dataset.editor) return field.addEventListener("input", changed);
  const { edit } = await import(form.dataset.editor);
  const host = $("editor");
  host.hidden = false;
  pane = edit(host, field.value, { "aria-label": "Pipeline, YAML or JSON", "aria-multiline": "true", tabindex: "0" }, changed, () => form.requestSubmit());
  field.hidden = true;
  field.required = false;
  form.querySelector("label[for=text]").addEventListener("click", () => pane.focus());
  $("keys").hidden = false;
}

// Problems: the page's own list, asked for when typing rests; only the last answer counts.
let timer;
let asked = 0;

function changed() {
  clearTimeout(timer);
  timer = setTimeout(check, WAIT_MS);
}

async function check() {
  const mine = ++asked;
  keep();
  const list = await sent("/playground/problems", new URLSearchParams({ text: pane.text() }));
  if (mine !== asked) return;
  if (!list) return say("The text could not be checked.");
  $("problems").innerHTML = list;
  mark();
  const count = $("problems").querySelectorAll("li").length;
  say(count === 1 ? "1 problem" : count ? `${count} problems` : "");
}

function mark() {
  const found = [...$("problems").querySelectorAll("li[data-line]")].map((item) => ({
    item,
    line: Number(item.dataset.line),
    column: Number(item.dataset.column),
    message: item.querySelector(".message").textContent,
  }));
  pane.show(found);
  for (const problem of found) {
    const place = problem.item.querySelector(".place");
    const button = Object.assign(document.createElement("button"), { type: "button", className: "place" });
    button.textContent = place.textContent;
    button.addEventListener("click", () => pane.go(problem));
    place.replaceWith(button);
  }
}

// What the service answers; nothing where it refuses, or does not answer at all.
async function sent(address, body) {
  const answer = await fetch(address, { method: "POST", body }).catch(() => null);
  return answer?.ok ? answer.text() : "";
}

const say = (words) => ($("said").textContent = words);

// The schedule: the page that the form leads to, its result put in place.
async function schedule(event) {
  event.preventDefault();
  clearTimeout(timer);
  asked++;
  field.value = pane.text();
  say("Scheduling ...");
  const page = new DOMParser().parseFromString(await sent(form.action, new URLSearchParams(new FormData(form))), "text/html");
  if (!page.getElementById("result")) return say("The service has not taken the text: it is busy, gone, or wants a token that may submit.");
  for (const id of ["problems", "result"]) $(id).replaceWith(document.adoptNode(page.getElementById(id)));
  mark();
  const predicted = $("predicted")?.textContent;
  say(predicted ? `Scheduled: predicted ${predicted}` : "Not scheduled.");
}

// The link: what is written and chosen, compressed, behind the #, which browsers send to no server.
async function packed(through, bytes) {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(through)).arrayBuffer());
}

async function keep() {
  field.value = pane.text();
  const written = new TextEncoder().encode(JSON.stringify(Object.fromEntries(new FormData(form))));
  const bytes = await packed(new CompressionStream("deflate-raw"), written);
  const text = btoa(Array.from(bytes, (b) => String.fromCharCode(b)).join(""));
  history.replaceState(null, "", `/playground#${text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`);
}

async function restore() {
  if (location.hash.length < 2) return;
  try {
    const text = atob(location.hash.slice(1).replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = await packed(new DecompressionStream("deflate-raw"), Uint8Array.from(text, (c) => c.charCodeAt(0)));
    const written = JSON.parse(new TextDecoder().decode(bytes));
    for (const name of ["platform", "method", "cost_model"]) form.elements[name].value = written[name] ?? "";
    form.elements.strict.checked = "strict" in written;
    pane.replace(written.text);
    check();
  } catch {
    say("The link does not hold a whole text.");
  }
}

await upgrade();
mark();
await restore();
form.addEventListener("submit", schedule);
form.addEventListener("change", keep);
form.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.defaultPrevented) form.requestSubmit();
});
window.addEventListener("hashchange", restore);
$("link").hidden = false;
$("link").addEventListener("click", async () => {
  await keep();
  await navigator.clipboard.writeText(location.href).then(
    () => say("The link is copied."),
    () => say("The address of this page is the link."),
  );
});
