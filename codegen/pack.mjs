// `node codegen/pack.mjs <folder>` bundles our modules and the packages that they import. A few
// files instead of eight hundred halve the start time of Node, and an installation has a quarter of
// the packages. Modules that are loaded on demand are separate chunks.
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const root = fileURLToPath(new URL('..', import.meta.url))
const [folder] = process.argv.slice(2)
if (folder === undefined) throw new Error('Name the output folder: node codegen/pack.mjs dist')
const sources = join(root, 'src')
const out = resolve(folder)
const to = join(out, 'src')

/** Files and folders that the program reads by path, so they are copied and not bundled. */
const copied = [
  'contract/document.gen.json',
  'extensions.example.mjs',
  'http/docs/browser',
  'http/docs/guides',
  'http/docs/arazzo.yaml',
]
const facts = /\/operations\.gen\.ts$/
const { dependencies, optionalDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
/**
 * The packages that stay outside the bundle. The `dependencies` have native code, contain files
 * that the program reads by path, or are loaded with `require`: npm installs them beside the
 * program. The bundle contains every other package that the program imports, so those are
 * `devDependencies`. The compiler of the types is used only in a checkout.
 */
const outside = [...Object.keys(dependencies), ...Object.keys(optionalDependencies), 'openapi-typescript']

/** Whether the module is the entry of a thread or process (db/entry-file.ts). */
const isEntry = (path) => path.endsWith('.entry.ts')
const entries = ['src', 'db']
  .flatMap((folder) => readdirSync(join(root, folder), { recursive: true }).map((path) => `${folder}/${path}`))
  .filter(isEntry)
  .map((path) => ({ in: path, out: path.replace(/\.ts$/, '') }))

/**
 * An esbuild plugin that gives each module the `import.meta.url` of its unbundled file, and leaves
 * the facts of the operations outside the bundle.
 */
const keepPlaces = {
  name: 'keep-places',
  setup({ onLoad, onResolve }) {
    onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const place = relative(sources, path).replace(/\.ts$/, '.js')
      const text = readFileSync(path, 'utf8')
      // An entry stays a separate file at its unbundled path, so its `import.meta.url` is already
      // right.
      if (isEntry(path)) return { contents: text, loader: 'ts' }
      return {
        contents: text.replaceAll('import.meta.url', `new URL(${JSON.stringify(`./${place}`)}, import.meta.url).href`),
        loader: 'ts',
      }
    })
    onResolve({ filter: facts }, ({ kind }) =>
      kind === 'entry-point' ? undefined : { path: './contract/operations.gen.js', external: true },
    )
  },
}

/**
 * The time of the previous build in milliseconds; 0 if there was none. A server that runs from the
 * previous build may still load the chunks of that build.
 */
const built = statSync(join(to, 'cli.js'), { throwIfNoEntry: false })?.mtimeMs ?? 0

const common = {
  absWorkingDir: root,
  outdir: out,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  logLevel: 'warning',
  // Defines `require` for bundled CommonJS packages, which load built-in modules of Node with
  // `require`.
  banner: {
    js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);",
  },
}
const { metafile } = await build({
  ...common,
  metafile: true,
  entryPoints: [{ in: 'src/cli.ts', out: 'src/cli' }, ...entries],
  bundle: true,
  external: outside,
  splitting: true,
  // Chunks are written beside cli.js, because `keepPlaces` resolves paths from that folder.
  chunkNames: 'src/chunk-[hash]',
  sourcemap: true,
  // Smaller files load faster. Names are not shortened and lines are short, so that a stack trace
  // is useful.
  minifyWhitespace: true,
  minifySyntax: true,
  lineLimit: 160,
  plugins: [keepPlaces],
})
mkdirSync(join(to, 'contract'), { recursive: true })
writeFileSync(join(to, 'contract/operations.gen.js'), await renderFacts())
for (const name of copied) {
  if (!existsSync(join(sources, name))) continue
  mkdirSync(dirname(join(to, name)), { recursive: true })
  cpSync(join(sources, name), join(to, name), { recursive: true })
}
const made = new Set(Object.keys(metafile.outputs).map((path) => basename(path)))
for (const name of readdirSync(to))
  if (/^chunk-\w+\.js(\.map)?$/.test(name) && !made.has(name) && statSync(join(to, name)).mtimeMs < built - 60_000)
    rmSync(join(to, name))
writeFileSync(join(to, 'packages.LICENSES.txt'), collectLicenses(Object.keys(metafile.inputs)))

/**
 * Returns the license text of a package that contains none. Throws for a package that is not in the
 * list, so that a person reviews its license.
 */
function writeLicense(name, license) {
  // All packages of this scope have the license of their repository.
  if (name.startsWith('@aws-sdk/') && license === 'Apache-2.0')
    return readFileSync(join(root, 'node_modules', '@aws-sdk', 'client-s3', 'LICENSE'), 'utf8').trim()
  const author = { 'abstract-logging': 'James Sumners' }[name]
  if (author === undefined || license !== 'MIT')
    throw new Error(`${name} comes without the text of its license (${license}).`)
  const mit = readFileSync(join(root, 'node_modules', 'kysely', 'LICENSE'), 'utf8')
  return mit.replace(/^Copyright.*$/m, `Copyright (c) ${author}`).trim()
}

function collectLicenses(inputs) {
  const folders = new Set(
    inputs.map((path) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0]).filter(Boolean),
  )
  const notices = [...folders].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'))
    const files = readdirSync(join(root, folder)).filter((file) => /^(licen[cs]e|copying|notice)\b/i.test(file))
    const texts = files.map((file) => readFileSync(join(root, folder, file), 'utf8').trim())
    if (texts.length === 0) texts.push(writeLicense(name, license))
    return [`${name} ${version}, ${license}`, ...texts].join('\n\n')
  })
  return `${notices.join(`\n\n${'-'.repeat(80)}\n\n`)}\n`
}

/**
 * Returns the facts about the operations as `accord regenerate` writes them, so that its `--check`
 * finds an unmodified build up to date.
 */
async function renderFacts() {
  const contents = `import { renderOperations } from './codegen/operations.ts'
    import { readContract } from './codegen/read.ts'
    process.stdout.write(renderOperations(readContract('.'), 'js'))`
  const { outputFiles } = await build({
    ...{ absWorkingDir: root, stdin: { contents, resolveDir: root }, bundle: true, write: false },
    ...{ format: 'esm', platform: 'node', packages: 'external' },
  })
  return execFileSync(process.execPath, ['--input-type=module', '-'], {
    cwd: root,
    input: outputFiles[0].text,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  })
}
