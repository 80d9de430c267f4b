"use strict";
// The table of parts: sorts by any column, and filters the rows by a text.
(() => {
  const table = document.querySelector("#parts table");
  if (!table) return;
  const body = table.tBodies[0];
  const value = (row, column) => {
    const cell = row.cells[column];
    const number = cell.dataset.value;
    return number === undefined ? cell.textContent.trim() : number === "" ? -Infinity : Number(number);
  };
  const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b),
    undefined, { numeric: true }));
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    const button = Object.assign(document.createElement("button"), { type: "button", className: "sorts" });
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const isDown = heading.getAttribute("aria-sort") !== "descending";
      [...table.tHead.rows[0].cells].forEach((each) => each.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", isDown ? "descending" : "ascending");
      const rows = [...body.rows].sort((a, b) => compare(value(a, column), value(b, column)) * (isDown ? -1 : 1));
      body.append(...rows);
    });
  });
  const field = document.querySelector("#search");
  const said = document.querySelector("#found");
  field?.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of body.rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      shown += !row.hidden;
    }
    said.textContent = words.length ? `${shown} of ${body.rows.length} rows` : "";
  });
})();
