// Takes a picture of every view, at three widths and in both themes, to be looked at. Usage:
//
//   node tests/e2e/pictures.mjs FOLDER [VIEW…]
//
// The pictures are FOLDER/VIEW-WIDTH-THEME.png, of the whole page. VIEW is the beginning of a name, such as `lesson`
// or `playground-fig8`; without it, every view is taken. With `--scrolled` there is one picture for each half of a
// window, FOLDER/VIEW-WIDTH-THEME-NUMBER.png, which shows what sticks to the window. Each view prints a line, with what
// is wrong if it is too wide or throws an error. every-view.mjs says which environment variables it reads.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { openEveryView } from "./every-view.mjs";

const WIDTHS = [360, 1280, 1920];
const THEMES = ["light", "dark"];

const scrolled = process.argv.includes("--scrolled");
const [folder, ...wanted] = process.argv
  .slice(2)
  .filter((argument) => !argument.startsWith("--"));
if (!folder)
  throw new Error("usage: node pictures.mjs FOLDER [VIEW…] [--scrolled]");
mkdirSync(folder, { recursive: true });

const { views, visit, close } = await openEveryView();

/** Takes the pictures of a page as it is, under a name. */
async function picture(page, name) {
  const file = (part) => join(folder, `${name}${part}.png`);
  // A dialog covers the window, not the whole page.
  const isDialog = (await page.$("dialog[open]")) !== null;
  if (!scrolled || isDialog) {
    await page.screenshot({
      path: file(""),
      fullPage: !isDialog,
      animations: "disabled",
    });
    return;
  }
  for (let part = 1, isLast = false; !isLast; part++) {
    isLast = await page.evaluate((part) => {
      const last = document.documentElement.scrollHeight - innerHeight;
      const top = ((part - 1) * innerHeight) / 2;
      scrollTo({ top, behavior: "instant" });
      return top >= last;
    }, part);
    await page.screenshot({
      path: file(`-${part}`),
      animations: "disabled",
    });
  }
}

/** Takes the pictures of a view at a width. Both themes are of one visit. */
async function take({ name, query, act }, width) {
  const problems = [];
  const viewport = { width, height: width < 500 ? 780 : 900 };
  try {
    const thrown = await visit(query, viewport, async (page) => {
      await act(page);
      // A page that has lost its bundle may keep a connection open.
      await page
        .waitForLoadState("networkidle", { timeout: 5000 })
        .catch(() => undefined);
      for (const theme of THEMES) {
        await page.emulateMedia({ colorScheme: theme });
        await page.waitForTimeout(300);
        await picture(page, `${name}-${width}-${theme}`);
      }
      const excess = await page.evaluate(
        () => document.documentElement.scrollWidth - innerWidth,
      );
      if (excess > 0) problems.push(`${excess} px too wide`);
    });
    problems.push(...thrown);
  } catch (error) {
    problems.push(String(error).split("\n")[0]);
  }
  console.log([`${name}-${width}`, ...problems].join(": "));
  return problems.length;
}

let wrong = 0;
for (const view of views) {
  if (wanted.length > 0 && !wanted.some((name) => view.name.startsWith(name)))
    continue;
  for (const width of WIDTHS) wrong += await take(view, width);
}
await close();
process.exit(wrong === 0 ? 0 : 1);
