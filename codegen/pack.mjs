// `node codegen/pack.mjs <folder>`: the program in a few files instead of eight hundred, which take Node less than half the time to start. Our
// own modules are put together with the packages that every start needs; what is loaded late stays apart, as do the other packages.
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const root = fileURLToPath(new URL('..', import.meta.url))
const [folder] = process.argv.slice(2)
if (folder === undefined) throw new Error('Say into which folder: node codegen/pack.mjs dist')
const sources = join(root, 'src')
const to = join(resolve(folder), 'src')

/** Read or started as files of their own. */
const asTheyAre = ['contract/document.gen.json', 'extensions.example.mjs', 'resources/data-transfer/sheet.mjs']
const facts = /\/operations\.gen\.ts$/
/**
 * Packages that every start needs: six hundred files, each of which would be looked for, read and wrapped by itself. What they need is put
 * in with them. Not what is compiled for a machine, what finds files beside itself, or what is loaded late.
 */
const together = [
  '@fastify/busboy',
  'ajv',
  'ajv-formats',
  'commander',
  'content-disposition',
  'dotenv',
  'fastest-levenshtein',
  'fastify',
  'fastify-plugin',
  'ipaddr.js',
  'kysely',
  'lru-cache',
  'luxon',
  'mitt',
  'negotiator',
  'openapi-backend',
  'prom-client',
]
const nameOf = (path) => path.split('/', path.startsWith('@') ? 2 : 1).join('/')
const isPackaged = (importer) => relative(root, importer).startsWith('node_modules')

/** Modules that a subprocess runs (kernel/runtime/offload.ts). */
const isEntry = (path) => path.endsWith('.entry.ts')
const entries = readdirSync(sources, { recursive: true })
  .filter(isEntry)
  .map((path) => ({ in: `src/${path}`, out: path.replace(/\.ts$/, '') }))

/** Each module goes on believing that it is where it was; packages stay outside. */
const places = {
  name: 'places',
  setup({ onLoad, onResolve }) {
    onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const place = relative(sources, path).replace(/\.ts$/, '.js')
      const text = readFileSync(path, 'utf8')
      // An entry stays a file of its own, at its place.
      if (isEntry(path)) return { contents: text, loader: 'ts' }
      return {
        contents: text.replaceAll('import.meta.url', `new URL(${JSON.stringify(`./${place}`)}, import.meta.url).href`),
        loader: 'ts',
      }
    })
    onResolve({ filter: /^[^./]/ }, ({ path, kind, importer }) =>
      kind === 'entry-point' || isPackaged(importer) || together.includes(nameOf(path))
        ? undefined
        : { path, external: true },
    )
    onResolve({ filter: facts }, ({ kind }) =>
      kind === 'entry-point' ? undefined : { path: './contract/operations.gen.js', external: true },
    )
  },
}

/** When what is there was built: a server that runs from it may still load what it has not needed so far. */
const built = statSync(join(to, 'cli.js'), { throwIfNoEntry: false })?.mtimeMs ?? 0

const common = {
  absWorkingDir: root,
  outdir: to,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  logLevel: 'warning',
  // Packages that are no modules ask for what Node has by `require`.
  banner: {
    js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);",
  },
}
const { metafile } = await build({
  ...common,
  metafile: true,
  entryPoints: [{ in: 'src/cli.ts', out: 'cli' }, ...entries],
  bundle: true,
  splitting: true,
  // Beside cli.js: a place is reckoned from there.
  chunkNames: 'chunk-[hash]',
  sourcemap: true,
  // Less to read at every start; names are not shortened, and lines are short enough to say where something went wrong.
  minifyWhitespace: true,
  minifySyntax: true,
  lineLimit: 160,
  plugins: [places],
})
if (!existsSync(join(to, 'contract', 'operations.gen.js')))
  await build({ ...common, entryPoints: [{ in: 'src/contract/operations.gen.ts', out: 'contract/operations.gen' }] })
for (const name of asTheyAre) {
  if (!existsSync(join(sources, name))) continue
  mkdirSync(dirname(join(to, name)), { recursive: true })
  copyFileSync(join(sources, name), join(to, name))
}
const made = new Set(Object.keys(metafile.outputs).map((path) => basename(path)))
for (const name of readdirSync(to))
  if (/^chunk-\w+\.js(\.map)?$/.test(name) && !made.has(name) && statSync(join(to, name)).mtimeMs < built - 60_000)
    rmSync(join(to, name))
writeFileSync(join(to, 'packages.LICENSES.txt'), licencesOf(Object.keys(metafile.inputs)))

/** A package without a file of its licence says no more than this; any other one has to be looked at first. */
function untold(name, license) {
  const author = { 'abstract-logging': 'James Sumners' }[name]
  if (author === undefined || license !== 'MIT')
    throw new Error(`${name} comes without the text of its licence (${license}).`)
  const mit = readFileSync(join(root, 'node_modules', 'kysely', 'LICENSE'), 'utf8')
  return mit.replace(/^Copyright.*$/m, `Copyright (c) ${author}`).trim()
}

/** What each package that is put in wants to be told with it. */
function licencesOf(inputs) {
  const folders = new Set(
    inputs.map((path) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0]).filter(Boolean),
  )
  const texts = [...folders].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'))
    const files = readdirSync(join(root, folder)).filter((file) => /^(licen[cs]e|copying|notice)\b/i.test(file))
    const told = files.map((file) => readFileSync(join(root, folder, file), 'utf8').trim())
    if (told.length === 0) told.push(untold(name, license))
    return [`${name} ${version}, ${license}`, ...told].join('\n\n')
  })
  return `${texts.join(`\n\n${'-'.repeat(80)}\n\n`)}\n`
}
