"use strict";
// Sorting: a click, or Enter, on a heading; a second one turns the order round. Cells carry their value in data-value.
document.addEventListener("click", (event) => {
  const button = event.target.closest(".sortable thead button");
  if (!button) return;
  const heading = button.closest("th"), table = button.closest("table");
  const headings = [...table.tHead.rows[0].cells], column = headings.indexOf(heading);
  const order = heading.getAttribute("aria-sort") === "descending" ? "ascending" : "descending";
  headings.forEach((other) => other.removeAttribute("aria-sort"));
  heading.setAttribute("aria-sort", order);
  const value = (row) => row.cells[column].dataset.value;
  const sign = order === "ascending" ? 1 : -1;
  const rows = [...table.tBodies[0].rows].sort((a, b) => {
    if (value(a) === "" || value(b) === "") return (value(a) === "") - (value(b) === "");
    return sign * (column ? value(a) - value(b) : value(a).localeCompare(value(b)));
  });
  table.tBodies[0].append(...rows);
});
// The chart of two columns; each pair was drawn once, whichever way round it is asked for.
const up = document.getElementById("up"), across = document.getElementById("across");
const figures = [...document.querySelectorAll(".scatters figure")];
function choose(changed) {
  if (up.value === across.value) {
    const other = changed === up ? across : up;
    other.selectedIndex = (other.selectedIndex + 1) % other.options.length;
  }
  const wanted = [up.value, across.value].sort().join();
  for (const figure of figures) figure.hidden = [figure.dataset.up, figure.dataset.across].sort().join() !== wanted;
}
for (const select of [up, across]) if (select) select.addEventListener("change", () => choose(select));
// Light or dark: as the system says until the reader says otherwise.
document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});
