"use strict";
{
  const tools = document.querySelector("header .tools");
  const save = (text, file, type, content) => {
    const link = document.createElement("a");
    link.textContent = text;
    link.download = file;
    link.href = "#";
    link.addEventListener("click", () => {
      link.href = URL.createObjectURL(new Blob([content], { type }));
    });
    tools.append(link);
  };
  save("All numbers as CSV", "report.csv", "text/csv",
    document.getElementById("report-csv").textContent);
  const json = document.getElementById("report-json");
  if (json) save("Raw results as JSON", "report.json", "application/json", json.textContent);

  const root = document.documentElement;
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const button = document.createElement("button");
  button.type = "button";
  const isDark = () => root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches;
  const name = () => { button.textContent = isDark() ? "Light page" : "Dark page"; };
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    name();
  });
  prefersDark.addEventListener("change", name);
  name();
  tools.append(button);
  tools.hidden = false;

  const hint = (frame) => {
    frame.nextElementSibling.hidden = frame.scrollWidth <= frame.clientWidth;
  };
  const resized = new ResizeObserver((entries) => entries.forEach(({ target }) => hint(target)));
  for (const frame of document.querySelectorAll(".scroll")) {
    hint(frame);
    resized.observe(frame);
  }
}
