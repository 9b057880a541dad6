// Code that is wider than its box scrolls by the keys too.
document.addEventListener("DOMContentLoaded", () => {
  for (const code of document.querySelectorAll("article pre")) code.tabIndex = 0;
});
