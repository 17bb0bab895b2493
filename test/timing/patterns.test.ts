// No regular expression needs quadratic time, and user input never becomes a regular expression.
// The test compares times: four times the text may take four times as long, but not sixteen times.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'
import { matches } from '../../src/kernel/write/etag.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Quadratic patterns that hostile texts cannot reach, each with its input. */
const harmless: Readonly<Record<string, string>> = {
  '\\{[^}]*\\}': 'paths of the contract',
  '\\/+$': 'ACCORD_APP_URL',
  '\\/.*$': 'ACCORD_STATEFUL_DOMAINS',
  '\\[([^\\]]*)\\]': 'a name that another pattern has found to be well formed',
  '<[^>]*>': 'cleaned HTML, where every < has its >',
  '<pre[^>]*>[^<]*': 'cleaned HTML',
}

interface Literal {
  source: string
  flags: string
  places: string[]
}

function literals(): Literal[] {
  const found = new Map<string, Literal>()
  for (const folder of ['src', 'db'])
    for (const name of readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })) {
      if (!/\.(ts|mjs)$/.test(name) || /\.gen\.ts$|^migrations/.test(name)) continue
      const path = join(folder, name)
      const file = ts.createSourceFile(path, readFileSync(join(root, path), 'utf8'), ts.ScriptTarget.Latest, true)
      const visit = (node: ts.Node): void => {
        if (ts.isRegularExpressionLiteral(node)) {
          const [, source = '', flags = ''] = /^\/(.*)\/([a-z]*)$/s.exec(node.text) ?? []
          const line = file.getLineAndCharacterOfPosition(node.getStart()).line + 1
          const literal = found.get(source) ?? { source, flags, places: [] }
          literal.places.push(`${path}:${line}`)
          found.set(source, literal)
        }
        ts.forEachChild(node, visit)
      }
      visit(file)
    }
  return [...found.values()]
}

/** The parts of hostile texts, in addition to words of the pattern. */
const units =
  'a|A|0|.|-|_|@|<|>|"|\'|/|\\|[|]|(|{|%|{%|,|;|:|=|&|+|*|ä| |\t|\n|\r|a.|a-|0.|<a |="|a@|--|\r\n| \n|[a]|1,|%20|<p '.split(
    '|',
  )
const ends = ['', '!', '\u0000', '\n']

const milliseconds = (work: () => unknown): number => {
  const before = performance.now()
  work()
  return performance.now() - before
}

/** Returns the minimum of several runs, because other load only adds time. */
const least = (tries: number, work: () => unknown): number =>
  Math.min(...Array.from({ length: tries }, () => milliseconds(work)))

/**
 * Returns the factor by which four times the text takes longer, or 1 if the time is not measurable.
 */
function growth(work: (length: number) => unknown): number {
  const [short, long] = [2000, 8000]
  if (least(1, () => work(short)) < 0.5) return 1
  let found = 1
  // Measures again before it fails, because another thread may have used the CPU.
  for (let patience = 4; patience > 0; patience--) {
    const base = least(3, () => work(short))
    found = base < 0.5 ? 1 : least(3, () => work(long)) / base
    if (found <= 9) break
  }
  return found
}

/** Returns a text that makes a pattern quadratic, or undefined. */
function attack({ source, flags }: Literal): string | undefined {
  const pattern = new RegExp(source, [...new Set(`${flags.replace('y', '')}g`)].join(''))
  const words = [...new Set(source.replaceAll(/\\[a-zA-Z]/g, ' ').match(/[A-Za-z<"@:/{%'=-]{1,12}/g) ?? [])]
  for (const start of ['', ...words.slice(0, 4)])
    for (const unit of new Set([...units, ...words]))
      for (const end of ends) {
        const text = (length: number): string => start + unit.repeat(Math.ceil(length / unit.length)) + end
        const work = (length: number): string => text(length).replace(pattern, '')
        if (growth(work) > 9) return JSON.stringify([start, unit, end])
      }
  return undefined
}

describe('a pattern of ours', () => {
  it('takes time in proportion to the text, or never sees a text of others', () => {
    const found = literals()
    expect(found.length).toBeGreaterThan(150)
    const slow = found.flatMap((literal) => {
      if (Object.hasOwn(harmless, literal.source)) return []
      const text = attack(literal)
      return text === undefined ? [] : [`/${literal.source}/ with ${text}: ${literal.places.join(', ')}`]
    })
    expect(slow).toEqual([])
  }, 300_000)

  it('is known to be harmless only while it is there', () => {
    const sources = new Set(literals().map(({ source }) => source))
    expect(Object.keys(harmless).filter((source) => !sources.has(source))).toEqual([])
  })

  it('would be found: this very look sees one that is not in proportion', () => {
    expect(attack({ source: '\\s+$', flags: '', places: [] })).toBeDefined()
    expect(attack({ source: '<[^>]*>', flags: 'g', places: [] })).toBeDefined()
    expect(attack({ source: '[a-z]+', flags: 'g', places: [] })).toBeUndefined()
  })
})

describe('a text of users', () => {
  it('becomes a pattern nowhere but where every sign of it is escaped', () => {
    const made: string[] = []
    for (const name of readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })) {
      if (!name.endsWith('.ts')) continue
      const text = readFileSync(join(root, 'src', name), 'utf8')
      for (const line of text.split('\n')) if (/new RegExp\(|RegExp\(/.test(line)) made.push(name)
    }
    // Files that create regular expressions from texts that are not hostile or are escaped.
    const known =
      /^(http\/log-redaction|contract\/(routes|input\/normalize)|kernel\/(write\/(events|event-names)|auth\/stateful-domains)|texts\/numbers|resources\/(emails\/(refused-recipients|attachments)|persons\/erase\/redact|quotes\/typeset|web-forms\/visitor-errors|webhooks\/rules))\.ts$/
    expect(made.filter((name) => !known.test(name))).toEqual([])
  })

  it('of a header costs no more than its length', () => {
    const cost = growth((length) => matches('"a",'.repeat(length * 4), '"b"'))
    expect(cost).toBeLessThan(9)
  })
})
