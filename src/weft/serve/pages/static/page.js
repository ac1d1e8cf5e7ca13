// The page of weft serve: keeps views fresh, draws curves as they grow, and asks networks. Everything works without it
// but what happens by itself: forms are sent, links are followed.

const say = (words) => { document.getElementById("said").textContent = words; };
const wait = (ms) => new Promise((done) => setTimeout(done, ms));

// ---- Light or dark, as the reader said last time (report.js has the button).
const root = document.documentElement;
try { if (localStorage.theme) root.dataset.theme = localStorage.theme; } catch { /* storage may be forbidden */ }
document.getElementById("theme").addEventListener("click", () => {
  try { localStorage.theme = root.dataset.theme; } catch { /* then it is forgotten */ }
});

// ---- Parts of a view are swapped for those of the same address, asked for again.
const shown = new Map();
async function swap(address, ids, force = false) {
  const response = await fetch(address, { headers: { accept: "text/html" } });
  if (!response.ok) return say(`The server answered ${response.status}.`);
  const text = await response.text();
  if (!force && shown.get(ids.join()) === address + text) return;
  shown.set(ids.join(), address + text);
  const fresh = new DOMParser().parseFromString(text, "text/html");
  for (const id of ids) replace(document.getElementById(id), fresh.getElementById(id));
}
function replace(old, fresh) {
  if (!old || !fresh || old.isEqualNode(fresh)) return;
  const chosen = new Set([...old.querySelectorAll("input[type=checkbox]:checked")].map((box) => box.value));
  const open = new Set([...old.querySelectorAll("details[open] > summary")].map((each) => each.textContent));
  const focus = old.contains(document.activeElement) ? mark(document.activeElement) : null;
  const left = old.querySelector(".scroll")?.scrollLeft;
  const read = [...old.querySelectorAll(".log")].map((log) => isAtEnd(log) ? null : log.scrollTop);
  for (const box of fresh.querySelectorAll("input[type=checkbox][name=run]")) box.checked = chosen.has(box.value);
  for (const each of fresh.querySelectorAll("details > summary")) if (open.has(each.textContent)) each.parentElement.open = true;
  old.replaceWith(fresh);
  if (left) fresh.querySelector(".scroll").scrollLeft = left;
  fresh.querySelectorAll(".log").forEach((log, number) => { log.scrollTop = read[number] ?? log.scrollHeight; });
  if (focus) [...fresh.querySelectorAll("a, button, input, select, [tabindex]")].find((each) => mark(each) === focus)?.focus();
  choices();
}
const isAtEnd = (log) => log.scrollTop + log.clientHeight >= log.scrollHeight - 4;
for (const log of document.querySelectorAll(".log")) log.scrollTop = log.scrollHeight; // what was printed last
const mark = (each) => [each.tagName, each.getAttribute("href"), each.name, each.value, each.getAttribute("aria-label"), each.textContent].join();

// ---- Forms that act as they are changed; the address follows, so that it can be kept and sent to others.
const addressOf = (form) => {
  const values = new URLSearchParams(location.search); // what other forms have chosen stays
  for (const { name } of [...form.elements, { name: "page" }]) values.delete(name);
  for (const [name, value] of new FormData(form)) if (value !== "" && !(name === "smooth" && +value === 0)) values.append(name, value);
  return `${form.getAttribute("action")}${values.size ? `?${values}` : ""}`;
};
let typing = 0;
document.addEventListener("input", (event) => {
  const form = event.target.closest("form[data-live-form]");
  if (!form || form.dataset.liveForm === "predict") return;
  clearTimeout(typing);
  typing = setTimeout(() => follow(addressOf(form), form.dataset.liveForm.split(" ")), event.target.type === "search" ? 250 : 80);
});
document.addEventListener("submit", (event) => {
  const form = event.target.closest("form[data-live-form]");
  if (!form || form.dataset.liveForm === "predict") return;
  event.preventDefault();
  follow(addressOf(form), form.dataset.liveForm.split(" "));
});
async function follow(address, ids, keep = "replaceState") {
  history[keep](null, "", address);
  const live = document.getElementById(ids[0]);
  if (live?.dataset.live) live.dataset.live = address;
  await swap(address, ids, true);
}
document.addEventListener("click", (event) => {
  const link = event.target.closest("#runs a.sort, #runs .pages a");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  follow(link.getAttribute("href"), ["runs"], "pushState");
});
addEventListener("popstate", () => location.reload());

// ---- What changes by itself is asked for again every few seconds, while somebody looks.
async function keepFresh(id, every) {
  for (;;) {
    await wait(1000 * every);
    const part = document.getElementById(id);
    if (!part?.dataset.live || !+part.dataset.every) return;
    if (document.visibilityState !== "visible") continue;
    try { await swap(part.dataset.live, [id]); } catch { say("The server does not answer."); await wait(5000); }
  }
}
for (const part of document.querySelectorAll("[data-live]")) if (+part.dataset.every) keepFresh(part.id, +part.dataset.every);

// ---- Chosen runs.
function choices() {
  for (const button of document.querySelectorAll("[data-needs-choice]")) {
    const count = button.form.querySelectorAll("input[name=run]:checked").length;
    button.disabled = !count;
  }
}
document.addEventListener("change", choices);
choices();

// ---- A run that goes on: each point of its curve comes as an event.
const charts = document.getElementById("charts");
const inWords = (seconds) => seconds < 100 ? `${seconds.toPrecision(3)} s` : seconds < 6000 ? `${(seconds / 60).toPrecision(3)} min` : `${(seconds / 3600).toPrecision(3)} h`;
const fact = (name, words) => { const place = document.querySelector(`[data-fact="${name}"]`); if (place) place.textContent = words; };
let drawn = Promise.resolve(), due = false;
function redraw() {
  if (due) return;
  due = true;
  drawn = drawn.then(async () => {
    await wait(1000);
    due = false;
    const response = await fetch(charts.dataset.charts + location.search);
    if (response.ok) charts.innerHTML = await response.text();
  }).catch(() => { due = false; });
}
function point(event) {
  fact("step", event.step);
  for (const name of ["loss", "validation_metric"]) if (event[name] != null) fact(name, event[name].toPrecision(4));
  const total = +document.querySelector('[data-fact="total"]')?.textContent;
  const bar = document.querySelector('[data-fact="progress"]');
  if (bar) bar.value = event.step;
  if (event.seconds) {
    fact("seconds", inWords(event.seconds));
    if (total && event.step) fact("left", inWords((total - event.step) * event.seconds / event.step));
  }
}
if (charts?.dataset.events) {
  const stream = new EventSource(charts.dataset.events);
  stream.addEventListener("point", (event) => { point(JSON.parse(event.data)); redraw(); });
  stream.addEventListener("reset", redraw);
  stream.addEventListener("end", (event) => {
    stream.close();
    say(`The run is ${JSON.parse(event.data).state}.`);
    setTimeout(() => location.reload(), 1500);
  });
}

// ---- Commands are copied by a click.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(button.parentElement.querySelector("pre").textContent.trim());
  button.textContent = "Copied";
  say("Copied.");
  await wait(1500);
  button.textContent = "Copy";
});

// ---- Networks are asked.
const asking = document.getElementById("asking");
if (asking) {
  let picture = null;
  const kind = asking.dataset.modality;
  const named = () => [...new Set(["model", "second"].map((name) => asking.elements[name]?.value).filter(Boolean))];
  const element = (tag, text, kind = "") => Object.assign(document.createElement(tag), { textContent: text, className: kind });

  function body() {
    if (kind === "image") return picture && { type: picture.type || "application/octet-stream", data: picture };
    const words = [...asking.querySelectorAll("textarea")].map((area) => area.value);
    if (!words[0]?.trim()) return null;
    let inputs = kind === "pair" ? words : words[0];
    if (kind === "vector") inputs = words[0].trim().startsWith("{") ? JSON.parse(words[0]) : words[0].split(/[\s,;]+/).filter(Boolean).map(Number);
    return { type: "application/json", inputs };
  }
  const given = () => { try { return body(); } catch { return null; } }; // half an object by column is nothing yet
  const base64 = async (file) => {
    const reader = new FileReader();
    await new Promise((done) => { reader.onload = done; reader.readAsDataURL(file); });
    return reader.result.slice(reader.result.indexOf(",") + 1);
  };
  async function post(address, sent, more) {
    const plain = sent.data && !more; // wishes need JSON, a picture alone does not
    const data = plain ? sent.data : JSON.stringify({ inputs: sent.data ? await base64(sent.data) : sent.inputs, ...more });
    return fetch(address, { method: "POST", body: data, headers: { "content-type": plain ? sent.type : "application/json" } });
  }
  async function ask(name, sent) {
    const place = document.querySelector(`[data-answer="${CSS.escape(name)}"] .found`);
    const top = +asking.elements.top_k.value || 5;
    const response = await post(`/api/v1/models/${encodeURIComponent(name)}/predict`, sent, { top_k: top });
    const found = await response.json();
    if (!response.ok) return place.replaceChildren(element("p", found.error, "failure"));
    if ("value" in found) return place.replaceChildren(element("p", found.value.toPrecision(6), "value"));
    const list = element("ol", "", "bars");
    for (const { label, score } of found.predictions.slice(0, top)) {
      const item = element("li", ""), bar = document.createElement("progress");
      Object.assign(bar, { max: 1, value: score });
      bar.setAttribute("aria-label", `${label}: ${(100 * score).toFixed(1)} %`);
      item.append(element("span", label, "label"), bar, element("span", `${(100 * score).toFixed(1)} %`, "share"));
      list.append(item);
    }
    place.replaceChildren(list);
    say(`${name}: ${found.predictions[0].label}, ${(100 * found.predictions[0].score).toFixed(0)} %`);
  }
  async function askAll() {
    const sent = given();
    if (!sent) return;
    for (const place of document.querySelectorAll(".due")) place.replaceChildren();
    await Promise.all(named().map((name) => ask(name, sent).catch(() => say("The server does not answer."))));
  }
  async function explain(button) {
    const place = button.parentElement.querySelector(".due"), name = button.closest("[data-answer]").dataset.answer;
    const sent = given();
    if (!sent) return place.replaceChildren(element("p", `Give it a ${{ image: "picture", vector: "row of numbers" }[kind] ?? "text"} first.`, "small"));
    button.disabled = true;
    place.replaceChildren(element("p", "Looking …", "small"));
    try {
      const response = await post(`/predict/saliency?model=${encodeURIComponent(name)}`, sent);
      if (!response.ok) return place.replaceChildren(element("p", (await response.json()).error, "failure"));
      if (response.headers.get("content-type") === "image/png") {
        const image = new Image();
        image.src = URL.createObjectURL(await response.blob());
        image.alt = "Which parts of the picture speak for the answer (orange) and against it (blue)";
        return place.replaceChildren(image, element("p", "Orange speaks for the answer, blue against it (integrated gradients).", "small"));
      }
      const words = element("p", "", "words");
      for (const { word, weight } of (await response.json()).words) {
        const each = element("mark", word.replace(/^##/, ""), `s${Math.round(10 * Math.abs(weight))} ${weight > 0 ? "for" : "against"}`);
        each.title = weight.toFixed(3);
        words.append(word.startsWith("##") || !words.childNodes.length ? "" : " ", each);
      }
      place.replaceChildren(words, element("p", "Orange speaks for the answer, blue against it (integrated gradients).", "small"));
    } finally { button.disabled = false; }
  }
  async function show(file) {
    if (!file) return;
    picture = file;
    const preview = document.getElementById("preview");
    try {
      const image = await createImageBitmap(file);
      const scale = Math.min(1, 320 / Math.max(image.width, image.height));
      const enlarge = Math.max(1, Math.floor(96 / Math.max(image.width, image.height)));
      preview.width = Math.max(1, image.width * scale * enlarge);
      preview.height = Math.max(1, image.height * scale * enlarge);
      const pen = preview.getContext("2d");
      pen.imageSmoothingEnabled = enlarge === 1;
      pen.drawImage(image, 0, 0, preview.width, preview.height);
      preview.hidden = false;
      preview.setAttribute("aria-label", `The picture ${file.name || "that was pasted"}, ${image.width} × ${image.height}`);
    } catch { preview.hidden = true; }
    await askAll();
  }
  const zone = document.getElementById("drop");
  zone?.addEventListener("dragover", (event) => { event.preventDefault(); zone.classList.add("over"); });
  zone?.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone?.addEventListener("drop", (event) => { event.preventDefault(); zone.classList.remove("over"); show(event.dataTransfer.files[0]); });
  if (zone) addEventListener("paste", (event) => show([...event.clipboardData.files].find((file) => file.type.startsWith("image/"))));
  for (const input of asking.querySelectorAll("input[type=file]")) input.addEventListener("change", () => show(input.files[0]));
  asking.addEventListener("input", (event) => {
    if (event.target.tagName === "TEXTAREA") { clearTimeout(typing); typing = setTimeout(askAll, 300); }
  });
  asking.addEventListener("change", async (event) => {
    if (!["model", "second", "top_k"].includes(event.target.name)) return;
    const values = new URLSearchParams([...new FormData(asking)].filter(([name, value]) => ["model", "second", "top_k"].includes(name) && value));
    const address = `/predict?${values}`;
    const chosen = [...asking.elements.model.options ?? []].find((option) => option.value === asking.elements.model.value);
    if (chosen && chosen.dataset.modality !== kind) return location.assign(address);
    history.replaceState(null, "", address);
    await swap(address, ["answers", "snippets"], true);
    await askAll();
  });
  asking.addEventListener("submit", (event) => { event.preventDefault(); askAll(); });
  document.addEventListener("click", (event) => { const button = event.target.closest("[data-explain]"); if (button) explain(button); });
}
