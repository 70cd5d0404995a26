// What the tests measure of a page in a frame.
const area = (element) => { const box = element.getBoundingClientRect(); return box.width > 0 && box.height > 0; };
const measure = (frame) => {
  const page = frame.contentDocument, root = page.documentElement;
  const all = (selector) => [...page.querySelectorAll(selector)];
  for (const details of all("details")) details.open = true;
  const texts = all("svg text").map((element) => element.getBoundingClientRect());
  return {
    width: root.clientWidth,
    scroll_width: Math.max(root.scrollWidth, page.body.scrollWidth),
    speedups: all("#speedups .mark").length,
    roofline: all("#roofline .mark").length,
    dots: all("#samples circle").length,
    empty: all(".mark, .whisker, .dots, .median, .strip, .area, .key use").filter((element) => {
      const box = element.getBoundingClientRect();
      return element.tagName === "line" ? box.width + box.height === 0 : !area(element);
    }).length,
    untitled: all(".mark").filter((element) => !element.querySelector("title")?.textContent).length,
    unenclosed: all("#speedups .mark").filter((mark) => {
      let whisker = mark;
      while (whisker && !whisker.matches(".whisker")) whisker = whisker.previousElementSibling;
      if (!whisker) return true;
      const [box, range] = [mark, whisker].map((element) => element.getBoundingClientRect());
      const middle = box.left + box.width / 2;
      return middle < range.left - 1 || range.right + 1 < middle;
    }).length,
    outside: texts.filter((box) => box.left < 0 || box.right > root.clientWidth).length,
    colours: new Set(all("#speedups .mark, #roofline .mark").map((mark) => getComputedStyle(mark).fill)).size,
    shapes: new Set(all("#roofline .mark").map((mark) => mark.getAttribute("href"))).size,
    engines: new Set(all("#roofline .mark").map((mark) => mark.getAttribute("href") + getComputedStyle(mark).fill)).size,
    bare_tables: all("table").filter((table) => !table.closest(".scroll")).length,
  };
};
