// Extracts the code of a Markdown file, so that a test can run the samples that readers copy.
import { readFileSync } from 'node:fs'

const fenced = /^```(\w+)\n([\s\S]*?)^```$/gm

/** Returns the code blocks of a language in order. `path` is relative to the repository. */
export const codeBlocks = (path: string, language: string): string[] =>
  [...readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8').matchAll(fenced)].flatMap(
    ([, name, code = '']) => (name === language ? [code] : []),
  )
