// Style rules for texts, checked by text search: phrases that are hard to understand, British
// spellings, and the width of comments and pages. In tests, the rules apply to comments and titles.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))
const maxColumns = 100

/** A released migration never changes, its comments included. changes.md is generated. */
const frozen = /^db\/migrations\/|guides\/changes\.md$|\.gen\.(ts|json)$|^test\/contract\/prose\.test\.ts$/

const names = (folder: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name))
const files = [...['src', 'db', 'codegen', 'test', '.github'].flatMap(names), ...readdirSync(root)]
  .filter((path) => /\.(ts|mjs|md|ya?ml|txt)$|(^|\/)Dockerfile$/.test(path))
  .filter((path) => !path.includes('node_modules') && !frozen.test(path))
  .map((path) => ({ path, lines: readFileSync(join(root, path), 'utf8').split('\n') }))

/** Forbidden phrases, each with a suggestion. */
const phrases: [pattern: RegExp, instead: string][] = [
  [/\bwho(so)?m?ever\b/i, 'name the subject: the caller, the worker, SQLite'],
  [/(?<![A-Za-z] )\bWho (?!am\b)[a-z]/, 'name the subject: the caller, the worker, SQLite'],
  [/\b(no|some|every)body\b/i, 'name the subject: no user, another caller, all processes'],
  [
    /\b(of|for|with|by|to|in|on|from|behind|than|and|or|as|but) (what|whom) (is|are|was|were|has|have|had|can|cannot|could|must|may|should|would|comes?|goes|stands?|they|it|we)\b/i,
    'name the thing instead of "what"',
  ],
  [
    /\bWhat (is|are|was|were|has|have|had|can|cannot|could|must|may|should|would|comes?|goes|stands?)\b(?!.*\?)/,
    'name the thing instead of "What"',
  ],
  [
    /\b(is|are|was|were|be|been) (looked (at|for|up)|told of|asked for|gone on with|let go)\b/i,
    'active voice, with the subject first',
  ],
  [/\bnone of (ours|theirs|its business)\b/i, 'say what it is'],
  [/\bknows? nothing of\b|\bhas nothing to do with\b/i, 'say what it does'],
  [
    /(?<!\b[Tt]here )\b(is|are|was|were) no (?!longer\b|more\b|need\b|other\b|such\b|way\b|limit\b|reason\b|point\b|matter\b)[a-z]/,
    'write "is not a …" or "there is no …"',
  ],
  [/\b(DOMAIN|DESIGN)( chapter)? \d|\bhouse rule \d/, 'state the rule: the repository is the specification'],
  [/\bOf (a|an|each|all|these|those|them|what|which|both|several|two|one) [a-z]/, 'begin with the subject'],
]

const spellings =
  /\b(behaviour|colour|favour|honour|neighbour|labour|centre|grey|travell\w+|modell(ed|ing)|((serial|normal|author|initial|recogn|minim|maxim|optim|summar|capital|synchron|character|priorit|categor|sanit|token|util|final|real|emphas|apolog|custom|general|special|standard|visual|local)is(e|es|ed|er|ers|ing|ation|ations))|unorganised|organis(e|ed|ing|ation|ations))s?\b/i

/**
 * Returns the lines with tables, code, links and badges removed, because these cannot be wrapped.
 */
function proseOf(lines: string[]): string[] {
  let isCode = false
  return lines.map((line) => {
    if (/^\s*(```|~~~)/.test(line)) isCode = !isCode
    return isCode || /^\s*(\||!?\[|<|```|~~~)/.test(line) ? '' : line
  })
}
const isComment = (line: string): boolean => /^\s*(\/\/|\/\*|\*)/.test(line)

/** The title of a test: the first argument of `it`, `describe` or `test`, also after `.each(…)`. */
const titles =
  /(?:\b(?:describe|it|test)|\b(?:describe|it|test)\.\w+\b(?:(?!\n\n)[\s\S])*?\))\(\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1/g

/** Returns the lines that the rules apply to: all lines, but in tests only comments and titles. */
function spokenIn(path: string, lines: string[]): string[] {
  if (!path.startsWith('test/') || !path.endsWith('.ts')) return lines
  const spoken = lines.map((line) => (isComment(line) ? line : ''))
  const text = lines.join('\n')
  for (const { 0: whole, 2: title = '', index } of text.matchAll(titles)) {
    const line = text.slice(0, index + whole.length).split('\n').length - 1
    spoken[line] = title
  }
  return spoken
}
const hasLink = (line: string): boolean => /https?:\/\/\S{40}/.test(line)

describe('the prose', () => {
  it('uses none of the turns of phrase that readers had to read twice', () => {
    const found = files.flatMap(({ path, lines }) =>
      spokenIn(path, lines).flatMap((line, index) =>
        phrases.flatMap(([pattern, instead]) => {
          const hit = pattern.exec(line)
          return hit ? [`${path}:${index + 1} "${hit[0]}": ${instead}`] : []
        }),
      ),
    )
    expect(found).toEqual([])
  })

  it('has American spelling', () => {
    const found = files.flatMap(({ path, lines }) =>
      spokenIn(path, lines).flatMap((line, index) => {
        const hit = spellings.exec(line)
        return hit ? [`${path}:${index + 1} ${hit[0]}`] : []
      }),
    )
    expect(found).toEqual([])
  })

  it(`has comments and paragraphs of at most ${maxColumns} columns`, () => {
    const found = files.flatMap(({ path, lines }) =>
      (path.endsWith('.md')
        ? proseOf(lines)
        : lines.map((line) => (/\.(ts|mjs)$/.test(path) && isComment(line) ? line : ''))
      )
        .map((line, index) => ({ line, at: `${path}:${index + 1}` }))
        .filter(({ line }) => line.length > maxColumns && !hasLink(line) && !/biome-ignore|@ts-/.test(line))
        .map(({ at, line }) => `${at} has ${line.length} columns`),
    )
    expect(found).toEqual([])
  })
})
