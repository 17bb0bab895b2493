// The source files that house.test.ts and imports.test.ts search.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../..', import.meta.url))

export interface Source {
  path: string
  text: string
  lines: number
}

export const sources: Source[] = ['src', 'db', 'codegen', 'test'].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => /\.(ts|mjs)$/.test(path) && !/\.gen\.ts$/.test(path))
    .map((path) => {
      const text = readFileSync(join(root, path), 'utf8')
      return { path, text, lines: text.trimEnd().split('\n').length }
    }),
)
export const source = sources.filter(({ path }) => path.startsWith('src/'))

/** Returns the code without its comments, because comments may mention forbidden names. */
export const code = (text: string): string =>
  text.replaceAll(/\/\*[\s\S]*?\*\//g, (each) => each.replaceAll(/[^\n]/g, '')).replaceAll(/(^|\s)\/\/.*$/gm, '$1')
