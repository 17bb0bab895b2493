// `node codegen/pack.mjs <folder>`: the program in a few files instead of eight hundred, which takes Node half the time to start. Only our
// own modules and kysely are put together; what is loaded late stays apart, and other packages are loaded from where they are installed.
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
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
const together = ['kysely']

/** Each module goes on believing that it is where it was; packages stay outside. */
const places = {
  name: 'places',
  setup({ onLoad, onResolve }) {
    onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const place = relative(sources, path).replace(/\.ts$/, '.js')
      const text = readFileSync(path, 'utf8')
      return {
        contents: text.replaceAll('import.meta.url', `new URL(${JSON.stringify(`./${place}`)}, import.meta.url).href`),
        loader: 'ts',
      }
    })
    onResolve({ filter: /^[^./]/ }, ({ path, kind }) =>
      kind === 'entry-point' || together.includes(path.split('/')[0]) ? undefined : { path, external: true },
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
}
const { metafile } = await build({
  ...common,
  metafile: true,
  entryPoints: [
    { in: 'src/cli.ts', out: 'cli' },
    { in: 'src/mail/parse.program.ts', out: 'mail/parse.program' },
  ],
  bundle: true,
  splitting: true,
  // Beside cli.js: a place is reckoned from there.
  chunkNames: 'chunk-[hash]',
  sourcemap: true,
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
copyFileSync(join(root, 'node_modules', 'kysely', 'LICENSE'), join(to, 'kysely.LICENSE'))
