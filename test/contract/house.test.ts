// The house rules, checked by text search: each concern is in one place, and a tag, its folder and
// its test have the same name. imports.test.ts has the rules about imports.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { extensionKeys } from '../../codegen/grammar.ts'
import { tags } from '../../src/contract/operations.gen.ts'
import { code, root, source, sources } from './sources.ts'

interface Rule {
  name: string
  pattern: RegExp
  /** The files that may contain it. */
  home: RegExp
  /** The files to search. The default is all of src. */
  within?: RegExp
  sentence: string
}

const rules: Rule[] = [
  {
    name: 'a transaction',
    pattern: /\.(transaction|startTransaction)\(/,
    home: /^src\/kernel\/write\/write\.ts$/,
    sentence:
      'Change things through write() or transaction() of kernel/write/write.ts: veto, rollback, event log and dry run are right there.',
  },
  {
    name: 'an event',
    pattern: /\bemit\(/,
    // These two files of src/http emit events of connections.
    home: /^src\/(kernel\/write\/(write|events)|http\/(request-guards|connection-limits))\.ts$/,
    sentence: 'Call write() of kernel/write/write.ts: it emits the pair in the right order, after the commit.',
  },
  {
    name: 'the time',
    pattern: /new Date\(\)|\bDate\.now\(|DateTime\.(now|local|utc)\(\)|performance\.now\(/,
    home: /^src\/kernel\/runtime\/clock\.ts$/,
    sentence: 'Use now(ctx), ctx.time or the clock of the services, so that a test can set the time.',
  },
  {
    name: 'the environment',
    pattern: /process\.env/,
    home: /^src\/config\/config\.ts$/,
    sentence: 'Name the setting in config.ts and receive its value.',
  },
  {
    name: 'a status code',
    pattern: /\breply\.(code|status)\(|^\s*\.code\(/m,
    home: /^src\/(http\/(error-handler|request-guards|docs\/(docs|page-routes|send-document))|contract\/routes)\.ts$/,
    sentence: 'Return data; the contract has the status. Refuse by throwing a Problem.',
  },
  {
    name: 'a route',
    pattern: /['"`]\/(api|healthz|readyz)\b/,
    home: /^src\/(http\/(docs|home|compat-v1)\/|commands\/|resources\/authentication\/login-page\.ts)/,
    sentence: 'Paths are in openapi.yaml; read them from the operation facts.',
  },
  {
    name: 'SQL of one engine',
    pattern:
      /json_each|json_extract|json_valid|->>|\bpragma\b|sqlite_|\bstrftime\(|\bdatetime\(|group_concat|\binstr\(|\browid\b|\bilike\b|::(int|text|jsonb)\b/i,
    home: /^$/,
    sentence: 'Engines differ: give the dialect in db/dialect.ts a method and call it.',
  },
  {
    name: 'a permission',
    pattern: /permissions\.has\(/,
    home: /^src\/(http\/pipeline|kernel\/(context|auth\/permissions))\.ts$|^src\/resources\/(account|roles|users)\//,
    sentence: 'Say it in the contract with x-permission; for a second key use hasPermission() of kernel/context.ts.',
  },
  {
    name: 'HTTP',
    pattern: /from 'fastify'/,
    home: /^src\/(app|server|contract\/routes)\.ts$|^src\/http\//,
    sentence: 'A handler gets data and returns data.',
  },
  {
    name: 'a mail or call to outside',
    pattern: /\bfetch\(|from 'node:https?'|from 'undici'/,
    home: /^src\/(mail|commands)\/|^src\/kernel\/outbound\/client\.ts$|^src\/resources\/(authentication\/login-page|web-forms\/browser-script)\.ts$/,
    sentence: 'Outward effects belong to a job, not to a request.',
  },
  {
    name: 'a start of a thread or process',
    pattern: /new Worker\(|\bfork\(|process\.execPath/,
    home: /^src\/processes\/supervisor\.ts$/,
    sentence: 'Write an entry file and start it by db/entry-file.ts: the compiler checks it, and it gets no secrets.',
  },
  {
    name: 'a row spread into a reply',
    pattern: /present: \([^)]*\)[^=]*=> \(\{ \.\.\.row/,
    home: /^$/,
    sentence: 'Write the reply out: a spread row leaks the column added next year.',
  },
]

describe('each concern has one home', () => {
  it.each(rules)('$name', ({ pattern, home, sentence }) => {
    const strays = source
      .filter(({ path }) => !home.test(path))
      .flatMap(({ path, text }) =>
        code(text)
          .split('\n')
          .flatMap((line, index) => (pattern.test(line) ? [`${path}:${index + 1} ${line.trim()}\n  ${sentence}`] : [])),
      )
    expect(strays).toEqual([])
  })

  it('money is never a float of the language', () => {
    const floats = source.filter(
      ({ path, text }) => path.startsWith('src/resources/') && /parseFloat\(|\.toFixed\(/.test(code(text)),
    )
    expect(floats.map(({ path }) => `${path}: amounts go through kernel/values/money.ts.`)).toEqual([])
  })
})

describe('db', () => {
  it('names no table of a resource: the slices hand in what depends on one', () => {
    const generated = readFileSync(join(root, 'db/tables.gen.ts'), 'utf8')
    const own = ['migrations', 'search_index', 'event_readers', 'locks', 'schedules']
    const tables = [...generated.slice(generated.indexOf('export interface DB {')).matchAll(/^ {2}(\w+): /gm)]
      .map(([, table = '']) => table)
      .filter((table) => !own.includes(table))
    expect(tables.length).toBeGreaterThan(30)
    const named = new RegExp(`(['"\`]|\\b(from|join|into|update|table) )(${tables.join('|')})\\b`, 'i')
    // The installation probes check for a seeded row before the database is opened.
    const strays = sources
      .filter(({ path }) => /^db\/(?!migrations\/|seed\.ts|(sqlite|postgres)\/installation-probe\.ts)/.test(path))
      .flatMap(({ path, text }) =>
        code(text)
          .split('\n')
          .flatMap((line) => (named.test(line) ? [`${path}: ${line.trim()}`] : [])),
      )
    expect(strays).toEqual([])
  })
})

describe('SQLite', () => {
  it('is loaded by one file, which knows the version for this Node', () => {
    const loads = /^import (?!type\b).*'better-sqlite3|\b(import|require|resolve)\(['"`]better-sqlite3/m
    const loading = sources.filter(({ text }) => loads.test(code(text))).map(({ path }) => path)
    expect(loading.map((path) => `${path}: import Sqlite from db/sqlite/driver.ts.`)).toEqual([])
  })
})

describe('a tag, its folder and its test have one name', () => {
  const slugs = tags.map(({ slug }) => slug).sort()

  it('src/resources has one folder per tag and nothing else', () => {
    expect(readdirSync(join(root, 'src/resources')).sort()).toEqual(slugs)
  })

  it('test/resources has a test per tag; a tag with much to say has several, `<tag>.<idea>.test.ts`', () => {
    const tests = readdirSync(join(root, 'test/resources')).map((name) => name.replace(/\..*/, ''))
    expect([...new Set(tests)].sort()).toEqual(slugs)
  })
})

/** The export names that src collects from every slice. */
const conventions = new Set([
  'deleteHooks',
  'eventConsumers',
  'handlers',
  'jobs',
  'publicGuards',
  'schedules',
  'searchDocument',
  'subLists',
])

describe('names', () => {
  it('an exported name occurs in one file', () => {
    const homes = new Map<string, string[]>()
    for (const { path, text } of sources.filter(({ path }) => !/^test\/|^db\/migrations\//.test(path))) {
      // A re-export (`export … from`) does not count, because it declares nothing.
      const declared = [
        ...text.matchAll(
          /^export (?:abstract |async |declare )*(?:class|const|enum|function\*?|interface|let|type) (\w+)/gm,
        ),
      ]
      const listed = [...text.matchAll(/^export (?:type )?\{([^}]*)\}(?! from)/gm)].flatMap(([, names = '']) => [
        ...names.matchAll(/(\w+)\s*(?:,|$)/g),
      ])
      for (const name of new Set([...declared, ...listed].map(([, name = '']) => name)))
        homes.set(name, [...(homes.get(name) ?? []), path])
    }
    const shared = [...homes].filter(([name, paths]) => paths.length > 1 && !conventions.has(name))
    expect(
      shared.map(
        ([name, paths]) => `${name} is exported by ${paths.join(' and ')}: one word, one concept; rename one.`,
      ),
    ).toEqual([])
    expect([...conventions].filter((name) => (homes.get(name) ?? []).length < 2)).toEqual([])
  })
})

describe('files', () => {
  it('open with a comment of one to four lines', () => {
    const bare = sources.filter(({ text }) => {
      const first = text.split('\n').findIndex((line) => !line.startsWith('//') && !line.startsWith('#!'))
      return first < 1 || first > 5
    })
    expect(bare.map(({ path }) => `${path}: say what lives here and why it is not elsewhere.`)).toEqual([])
  })

  it('have at most 400 lines', () => {
    const long = sources.filter(
      ({ path, lines }) => lines > 400 && !/^test\/(resources|kernel|http|commands|config|codegen)\//.test(path),
    )
    expect(long.map(({ path, lines }) => `${path} has ${lines} lines: give an idea in it a file of its own.`)).toEqual(
      [],
    )
  })

  it('hold no skipped or lonely test and no default export', () => {
    const strays = sources.filter(
      ({ path, text }) =>
        /\b(it|describe|test)\.(skip|only|todo)\b/.test(code(text)) ||
        (/^export default/m.test(text) && !/config\.ts$|\.mjs$/.test(path)),
    )
    expect(strays.map(({ path }) => path)).toEqual([])
  })

  it('of tests wait with until() or expect.poll, which are patient: vi.waitFor gives up after a second', () => {
    const strays = sources.filter(({ path, text }) => path.startsWith('test/') && /\bvi\.waitFor\(/.test(code(text)))
    expect(strays.map(({ path }) => path)).toEqual([])
  })

  it('of tests take the memory of the process, and processor time, only in test/timing', () => {
    const strays = sources.filter(
      ({ path, text }) =>
        path.endsWith('.test.ts') &&
        !path.startsWith('test/timing/') &&
        /process\.(memoryUsage|cpuUsage)\(|monitorEventLoopDelay\(/.test(code(text)),
    )
    expect(strays.map(({ path }) => path)).toEqual([])
  })

  it('are imported with their ending', () => {
    const strays = sources.filter(({ text }) => /from '\.{1,2}\/[^']*(?<!\.(ts|json|mjs|js))'/.test(code(text)))
    expect(strays.map(({ path }) => path)).toEqual([])
  })
})

describe('the contract', () => {
  it('knows the keywords of our own that codegen/README.md lists, and no other', () => {
    const [, rest = ''] = readFileSync(join(root, 'codegen/README.md'), 'utf8').split('\n| Keyword |')
    const rows = (rest.split('\n\n')[0] ?? '').split('\n').slice(2)
    const listed = rows.map((row) => row.split('|').map((cell) => cell.trim().replaceAll('`', '')))
    expect(listed.map(([, name, kinds]) => `${name} ${kinds}`).sort()).toEqual(
      [...new Set(extensionKeys.map(({ name }) => name))]
        .map((name) => {
          const kinds = extensionKeys.filter((each) => each.name === name).map(({ kind }) => kind)
          return `${name} ${kinds.join(', ')}`
        })
        .sort(),
    )
    const silent = listed.filter(
      ([, name = '', , , file = '']) => !readFileSync(join(root, file), 'utf8').includes(name),
    )
    expect(silent).toEqual([])
  })
})
