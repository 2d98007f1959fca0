import { configs as lit } from "eslint-plugin-lit";
import { defineConfig } from "eslint/config";
import tseslint from "typescript-eslint";

export default defineConfig({
  files: ["src/**/*.ts"],
  extends: [tseslint.configs.recommendedTypeChecked, lit["flat/recommended"]],
  languageOptions: { parserOptions: { project: "./tsconfig.json" } },
  rules: {
    // An async function turns what is thrown into a rejection, even without an await.
    "@typescript-eslint/require-await": "off",
    "@typescript-eslint/no-unused-vars": ["error", { argsIgnorePattern: "^_" }],
    // What the page throws is a `Failure`, which is no `Error`.
    "@typescript-eslint/only-throw-error": "off",
    "@typescript-eslint/prefer-promise-reject-errors": "off",
    // Lit calls the listeners of a template with the element as `this`.
    "@typescript-eslint/unbound-method": "off",
  },
});
