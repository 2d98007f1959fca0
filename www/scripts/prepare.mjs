// Before trunk: installs the page's packages, if they are missing, and builds its scripts and styles.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

function npm(...args) {
  // On Windows npm is a script, which only a shell can start.
  const { status } = spawnSync("npm", args, { cwd: root, stdio: "inherit", shell: process.platform === "win32" });
  if (status !== 0) process.exit(status ?? 1);
}

if (!existsSync(new URL("../node_modules", import.meta.url))) {
  console.error("installing the page's packages (npm ci): lit, fflate, two fonts, esbuild, typescript, binaryen");
  npm("ci", "--no-audit", "--no-fund");
}
npm("run", "--silent", "build");
