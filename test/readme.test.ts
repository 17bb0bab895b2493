// All commands, links and settings in the README must exist.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { settingsTable } from '../src/config/settings-text.ts'
import { leafCommands } from './support/commands.ts'

const read = (path: string): string => readFileSync(path, 'utf8')
const readme = read('README.md')
const commandGuide = read('src/commands/README.md')
const guides = [
  'CHANGELOG.md',
  'deploy/README.md',
  'deploy/operating.md',
  'deploy/postgresql.md',
  'src/commands/README.md',
  'src/config/README.md',
  'src/http/compat-v1/README.md',
  'codegen/client/README.md',
  'README.md',
  'src/README.md',
  'test/README.md',
  'codegen/README.md',
  'db/README.md',
  '.github/CONTRIBUTING.md',
  '.github/SECURITY.md',
]
const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }

describe('the guides', () => {
  it.each(guides)('%s links only to what exists', (guide) => {
    const links = [...read(guide).matchAll(/\]\((?!https?:)([^)#]+)\)/g)].map(([, path]) => path ?? '')
    expect(links.filter((path) => !existsSync(resolve(dirname(guide), path)))).toEqual([])
  })

  it.each(guides)('%s names only npm scripts that exist, and these run files that exist', (guide) => {
    const named = [...read(guide).matchAll(/npm (?:run )?(start|test|(?<=run )[a-z][\w:-]*)/g)].map(
      ([, name]) => name ?? '',
    )
    expect(named.filter((name) => scripts[name] === undefined)).toEqual([])
    const files = named.flatMap((name) => scripts[name]?.match(/\b(?:src|test|codegen)\/\S+\.m?[jt]s\b/g) ?? [])
    expect(
      files.filter((file) => !existsSync(file.replace(/^dist\//, '').replace(/\.js$/, '.ts')) && !existsSync(file)),
    ).toEqual([])
  })
})

/** Documents with samples, and the programs that print samples. */
const withSamples = [
  ...guides,
  'src/http/home/home-page.ts',
  ...readdirSync('src/http/docs/guides').map((name) => `src/http/docs/guides/${name}`),
]

describe('the samples', () => {
  it.each(withSamples)('in %s send Accept, so a refused token is not answered with a page', (path) => {
    const text = read(path).replaceAll(/\\+\n\s*/g, ' ')
    const commands = text.split('\n').filter((line) => /\bcurl .*(\/api\/|\$URL|\$\{base\})/.test(line))
    const programs = [...text.matchAll(/^```(?:ts|js|python)\n[\s\S]*?^```/gm)]
      .map(([program]) => program)
      .filter((program) => /\bfetch\(|urllib\.request|requests\.|createClient/.test(program))
    expect([...commands, ...programs].filter((sample) => !/Accept\b/i.test(sample))).toEqual([])
  })
})

describe('README.md', () => {
  it('is shorter than 10 KB', () => {
    expect(Buffer.byteLength(readme)).toBeLessThan(10_240)
  })

  it('names every command of the command line, and no other', () => {
    const listed = [...commandGuide.matchAll(/^\| `accord ([\w: -]+)`/gm)].map(([, name]) => name)
    expect(listed.sort()).toEqual(
      leafCommands()
        .map(({ path }) => path)
        .sort(),
    )
  })

  it('has every setting with its default and meaning', () => {
    expect(read('src/config/README.md')).toContain(`\n\n${settingsTable()}\n`)
  })

  it('gives the test command that CI runs', () => {
    expect(readme).toContain('\nnpm ci && npm test\n')
    expect(read(join('.ci', 'run')).trimEnd().split('\n').at(-1)).toBe('npm ci && npm test')
    expect(read('.github/workflows/ci.yml')).toContain('bash .ci/run')
  })

  it('shows calls of operations that exist', () => {
    const paths = read('openapi.yaml')
    for (const [, path] of readme.matchAll(/['"`](\/api\/admin\/[\w./-]+)['"`]/g))
      expect(paths).toContain(`\n  ${path}:`)
  })
})

describe('SECURITY.md', () => {
  it('names tests that are there', () => {
    const table = read('.github/SECURITY.md')
      .split('\n')
      .filter((line) => line.startsWith('| **'))
    const named = table.flatMap((line) =>
      [...(line.split(' | ')[1] ?? '').matchAll(/`([^`]+)`/g)].map(([, name = '']) => name),
    )
    const files = readdirSync('test', { recursive: true, encoding: 'utf8' })
    const isThere = (name: string): boolean => {
      const [beginning = '', end = ''] = name.split('*')
      return files.some((file) =>
        name.endsWith('/') ? `${file}/` === name : file.startsWith(beginning) && file.endsWith(end),
      )
    }
    expect(table.length).toBeGreaterThan(20)
    expect(named.length).toBeGreaterThan(table.length)
    expect(named.filter((name) => !isThere(name))).toEqual([])
  })
})
