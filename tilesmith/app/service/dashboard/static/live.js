// A page that follows a job: at every event it asks for itself again, and puts what is new in place.
let again = false;
let asking = false;

async function renew() {
  again = true;
  if (asking) return;
  asking = true;
  while (again) {
    again = false;
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } }).catch(() => null);
    if (!answer?.ok) break; // the stream of events is opened again by the browser, and leads here again
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    document.title = page.title;
    document.getElementById("state").textContent = page.getElementById("state").textContent;
    const focused = document.activeElement?.closest("#job form")?.getAttribute("action");
    document.getElementById("job").replaceWith(page.getElementById("job"));
    if (focused) document.querySelector(`#job form[action="${focused}"] button, #job form button`)?.focus();
    if (!document.getElementById("job").dataset.events) source.close();
  }
  asking = false;
}

const source = new EventSource(document.getElementById("job").dataset.events);
for (const kind of ["state", "progress"]) source.addEventListener(kind, renew);
