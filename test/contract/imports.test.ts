// Imports follow one order: between the folders of src as its README says, between slices, between
// the rooms of the kernel, and never in a circle.
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type OperationFact, operations } from '../../src/contract/operations.gen.ts'
import { code, root, source, sources } from './sources.ts'

/**
 * The groups of slices. A slice may import from its own group and from earlier groups.
 */
const groups = [
  ['roles', 'users', 'groups', 'authentication', 'tokens', 'account', 'system', 'files'],
  ['attributes', 'tags', 'sources', 'types', 'pipelines', 'configuration', 'views'],
  ['organizations', 'persons'],
  ['warehouses', 'locations', 'products'],
  ['leads', 'quotes'],
  ['activities', 'email-templates', 'emails'],
  ['bulk', 'events', 'webhooks', 'workflows', 'web-forms', 'marketing', 'data-transfer', 'search', 'reports'],
]
const groupOf = (path: string): number => groups.findIndex((names) => names.includes(path.split('/')[2] ?? ''))

/** The folders of the kernel. A folder may import values from itself and from earlier folders. */
const rooms = [['runtime', 'values', 'outbound'], ['query'], ['auth', 'write'], ['history', 'files'], ['resource']]

/** The import table of src/README.md: folders or files, and those that they may import. */
const table = readFileSync(join(root, 'src/README.md'), 'utf8')
  .split('\n')
  .filter((line) => /^\| `[^|]+\|[^|]+\|[^|]+\|$/.test(line))
  .map((line) => line.split('|').map((cell) => [...cell.matchAll(/`([\w./-]+?)\/?`/g)].map(([, name = '']) => name)))
  .map(([, names = [], , mayImport = []], row, all) => ({ names, mayImport, isLast: row === all.length - 1 }))
/** Returns the folder or file of the table that a path belongs to, such as `kernel` or `app.ts`. */
const placeOf = (path: string): string => path.replace(/^src\//, '').split('/')[0] ?? ''

/** The folders outside src that a folder outside src may import from. The first match applies. */
const reach: [folder: RegExp, targets: RegExp][] = [
  [/^db\//, /^db\//],
  [/^codegen\/client\/pack\.mjs$/, /^codegen\/(schema|read)\.ts$/],
  // The client package uses only the generated types of the server.
  [/^codegen\/client\//, /^codegen\/client\/|^src\/contract\/schema\.gen\.ts$/],
  [
    /^codegen\//,
    /^(codegen|db)\/|^src\/(contract\/(input\/(did-you-mean|ids-only)|old-names|bare-verbs)\.ts|node-version\.mjs)$/,
  ],
]

describe('imports follow one order', () => {
  const imports = sources
    .filter(({ path }) => !path.startsWith('test/'))
    .flatMap(({ path, text }) =>
      [...code(text).matchAll(/(import type [^'()]*?)?(?:from|import) ?\(?'(\.[^']+)'/g)].map(
        ([, type, target = '']) => ({
          path,
          isType: type !== undefined,
          target: relative(root, resolve(root, dirname(path), target)),
        }),
      ),
    )

  it('a folder outside src reaches only what it may', () => {
    const strays = imports.filter(
      ({ path, target }) =>
        !path.startsWith('src/') && !(reach.find(([folder]) => folder.test(path))?.[1].test(target) ?? false),
    )
    expect(strays.map(({ path, target }) => `${path} imports ${target}`)).toEqual([])
  })

  it('a folder of src imports what the table of src/README.md says, and all of it', () => {
    const above = table.findIndex(({ names }) => names.includes('app.ts'))
    const unused = new Set(table.flatMap(({ names, mayImport }) => mayImport.map((name) => `${names[0]}: ${name}`)))
    const strays = imports.filter(({ path, target }) => {
      const row = table.findIndex(({ names }) => names.includes(placeOf(path)))
      const { names, mayImport, isLast } = table[row] ?? { names: [], mayImport: [], isLast: false }
      const allowed = [target.replace(/^src\//, ''), placeOf(target)].find((name) => mayImport.includes(name))
      unused.delete(`${names[0]}: ${allowed}`)
      const isAbove = row === above && table.slice(0, above).some((each) => each.names.includes(placeOf(target)))
      const isOutside = !path.startsWith('src/')
      return !(isOutside || isLast || isAbove || names.includes(placeOf(target)) || allowed !== undefined)
    })
    expect(strays.map(({ path, target }) => `${path} imports ${target}`)).toEqual([])
    expect([...unused]).toEqual([])
  })

  it('no files of src import each other in a circle, not even types', () => {
    const targets = new Map(source.map(({ path }) => [path, imports.filter((each) => each.path === path)]))
    const left = new Set(source.map(({ path }) => path))
    // Files without imports are removed again and again, until only circles are left.
    for (let before = -1; before !== left.size; ) {
      before = left.size
      for (const path of left) if (!targets.get(path)?.some(({ target }) => left.has(target))) left.delete(path)
    }
    expect([...left]).toEqual([])
  })

  it('a slice imports from its own group or from the left', () => {
    const strays = imports.filter(
      ({ path, target }) =>
        [path, target].every((each) => each.startsWith('src/resources/')) && groupOf(target) > groupOf(path),
    )
    expect(
      strays.map(({ path, target }) => `${path} imports ${target}: if the left must react to the right, it listens.`),
    ).toEqual([])
  })

  it('a room of the kernel imports values from its own room or from an earlier one', () => {
    const roomOf = (path: string): string => path.split('/')[2] ?? ''
    const strays = imports.filter(
      ({ path, target, isType }) =>
        !isType &&
        [path, target].every((each) => /^src\/kernel\/[^/]+\//.test(each)) &&
        rooms.findIndex((names) => names.includes(roomOf(target))) >
          rooms.findIndex((names) => names.includes(roomOf(path))),
    )
    expect(strays.map(({ path, target }) => `${path} imports ${target}`)).toEqual([])
    const folders = readdirSync(join(root, 'src/kernel'), { withFileTypes: true }).filter((each) => each.isDirectory())
    expect(folders.map(({ name }) => name).sort()).toEqual(rooms.flat().sort())
  })

  it('no file of the kernel names a resource, apart from those that decide who is calling', () => {
    // Tables of the caller (auth/) and of the event log (write/, history/), which are concepts of
    // the kernel.
    const known = new Set(['users', 'roles', 'groups', 'tokens', 'sessions', 'events'])
    const tables = source.flatMap(({ text }) =>
      [...text.matchAll(/^\s+table: '(\w+)',$/gm)].map(([, name]) => name ?? ''),
    )
    const entities = Object.values<OperationFact>(operations)
      .filter(({ path, method }) => method === 'post' && /^\/api\/admin\/(\w+\/)*[\w-]+$/.test(path))
      .map(({ path }) => path.split('/').at(-1) ?? '')
    const names = [...new Set([...tables, ...entities])].filter((name) => !known.has(name) && name.endsWith('s'))
    expect(names).toContain('leads')
    const named = new RegExp(`['"\`](${names.join('|')})[.'"\`]`)
    const strays = source
      .filter(({ path }) => path.startsWith('src/kernel/'))
      .flatMap(({ path, text }) =>
        [...code(text).matchAll(new RegExp(named, 'g'))].map(([found]) => `${path}: ${found}`),
      )
    // A lead shows its persons. Many records have tags, and tag links have their own events.
    expect(strays).toEqual(["src/kernel/query/visibility.ts: 'persons'", "src/kernel/write/event-log.ts: 'tags'"])
  })

  it('every slice stands in the order', () => {
    expect(readdirSync(join(root, 'src/resources')).filter((slice) => groupOf(`src/resources/${slice}`) < 0)).toEqual(
      [],
    )
  })

  it('no code imports a test, and only the regenerate command reaches codegen', () => {
    const strays = imports.filter(
      ({ path, target }) =>
        target.startsWith('test/') || (target.startsWith('codegen/') && !/^codegen\/|^src\/commands\//.test(path)),
    )
    expect(strays).toEqual([])
  })
})
