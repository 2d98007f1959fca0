/** An error, in the three parts that every error of akin has. */
export interface Failure {
  /** The kind of error: a stable name in lower case. */
  code: string;
  /** What is wrong and why. */
  message: string;
  /** What the reader can do about it. */
  hint: string;
}

export const failure = (code: string, message: string, hint: string): Failure => ({ code, message, hint });

const isFailure = (error: unknown): error is Failure =>
  typeof error === "object" && error !== null && "code" in error && "message" in error && "hint" in error;

/** Anything thrown, as a `Failure`. A crash of the engine gets the code `crash`, refused memory `memory`, an unknown error `unexpected`. */
export function toFailure(error: unknown): Failure {
  if (isFailure(error)) return failure(String(error.code), String(error.message), String(error.hint));
  if (error instanceof WebAssembly.RuntimeError) {
    return failure("crash", `the engine stopped: ${error.message}`, "it restarts by itself; please try again");
  }
  // Chromium names what is missing, Firefox and Safari the policy.
  if (error instanceof WebAssembly.CompileError && /unsafe-eval|CSP|Content Security Policy/i.test(error.message)) {
    return failure(
      "policy",
      "the security policy of this page does not allow WebAssembly",
      "add `'wasm-unsafe-eval'` to `script-src` in its `Content-Security-Policy`",
    );
  }
  // Browsers refuse memory with this error: "Array buffer allocation failed", "could not allocate memory".
  if (error instanceof RangeError && /memory|alloc/i.test(error.message)) {
    return failure(
      "memory",
      `the browser has no memory left for this: ${error.message}`,
      "close other tabs and programs, and try again",
    );
  }
  const message = error instanceof Error ? error.message : String(error);
  return failure("unexpected", message, "reload the page; if it happens again, please report it");
}

/** The text as a sentence: with a capital, unless it begins with a file's name, and a full stop. */
export function sentence(text: string): string {
  if (text === "") return "";
  const capital = /^\p{Letter}+(?=\s|$)/u.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text;
  return capital + (/[.!?]$/.test(text) ? "" : ".");
}
