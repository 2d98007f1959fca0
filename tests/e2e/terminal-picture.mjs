// Draws what a program writes to a terminal: `script` of util-linux records it, and xterm.js draws it in a page.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const XTERM = new URL("../node_modules/@xterm/xterm/", import.meta.url);

/** The bytes that a line of the shell writes to a terminal of this size, in a folder. */
export function record(line, { columns, rows, folder, environment = {} }) {
  const place = mkdtempSync(join(tmpdir(), "akin-terminal-"));
  try {
    const file = join(place, "typescript");
    const { status, error } = spawnSync(
      "script",
      [
        "--quiet",
        "--return",
        "--command",
        `stty cols ${columns} rows ${rows}; ${line}`,
        file,
      ],
      {
        cwd: folder,
        stdio: "ignore",
        env: {
          ...process.env,
          TERM: "xterm-256color",
          SHELL: "/bin/sh",
          ...environment,
        },
      },
    );
    if (error) throw error;
    const text = readFileSync(file);
    // The first and the last line are of `script`.
    const start = text.indexOf(0x0a) + 1;
    const end = text.lastIndexOf("\nScript done on");
    return { status, bytes: text.subarray(start, end < 0 ? undefined : end) };
  } finally {
    rmSync(place, { recursive: true });
  }
}

/**
 * Draws the screen of a terminal after these bytes as a PNG file. Without `rows`, the screen is as high as its text.
 * Resolves to the text on it.
 */
export async function drawTerminal(browser, bytes, file, { columns, rows }) {
  const page = await browser.newPage({ deviceScaleFactor: 1.5 });
  try {
    await page.setContent(
      "<style>body { margin: 0; background: #fdfcf9 } #screen { display: inline-block; padding: 14px 16px } .xterm .scrollbar { display: none }</style>" +
        "<div id=screen></div>",
    );
    await page.addStyleTag({
      content: readFileSync(new URL("css/xterm.css", XTERM), "utf8"),
    });
    await page.addScriptTag({
      content: readFileSync(new URL("lib/xterm.js", XTERM), "utf8"),
    });
    const text = await page.evaluate(
      async ({ base64, columns, rows }) => {
        const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
        const terminal = new Terminal({
          cols: columns,
          rows: rows ?? 300,
          scrollback: 5000,
          fontFamily: "DejaVu Sans Mono, Liberation Mono, monospace",
          fontSize: 14,
          cursorInactiveStyle: "none",
          theme: {
            background: "#fdfcf9",
            foreground: "#222222",
            green: "#2f7d4f",
            yellow: "#8a5a00",
            cyan: "#00639c",
            brightBlack: "#8b877d",
            cursor: "#fdfcf9",
          },
        });
        terminal.open(document.getElementById("screen"));
        await new Promise((resolve) => terminal.write(bytes, resolve));
        const buffer = terminal.buffer.active;
        const lines = Array.from({ length: buffer.length }, (_, row) =>
          (buffer.getLine(row)?.translateToString(true) ?? "").trimEnd(),
        );
        if (rows === undefined) {
          const height = lines.findLastIndex((line) => line !== "") + 1;
          terminal.resize(columns, Math.max(height, 1));
          terminal.scrollToTop();
          // The screen is drawn in the next frame.
          await new Promise((resolve) =>
            requestAnimationFrame(() => requestAnimationFrame(resolve)),
          );
        }
        return lines.join("\n").trimEnd();
      },
      { base64: bytes.toString("base64"), columns, rows },
    );
    // Right of the screen there is a rule of the scroll bar.
    const screen = await page.locator(".xterm-screen").boundingBox();
    const { height } = await page.locator("#screen").boundingBox();
    await page.screenshot({
      path: file,
      clip: { x: 0, y: 0, width: screen.x + screen.width - 1, height },
    });
    return text;
  } finally {
    await page.close();
  }
}
