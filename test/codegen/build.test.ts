// Building: codegen/build.mjs, which `npm start` runs, builds only after a change and prints it.
// Tested in a temporary project with one module. `npm pack` creates a small package that runs.
import { execFileSync, spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { packProgram } from '../support/packed-program.ts'

const root = mkdtempSync(join(tmpdir(), 'accord-build-'))
// Inside node_modules, so that the package finds its dependencies.
const installation = resolve('node_modules', '.cache', `accord-package-${process.pid}`)
afterAll(() => {
  for (const folder of [root, installation]) rmSync(folder, { recursive: true, force: true })
})

const module = join(root, 'src', 'cli.ts')
const save = (text: string): void => writeFileSync(module, text)
const output = (): string => readFileSync(join(root, 'dist', 'src', 'cli.js'), 'utf8')

function build(...args: string[]): { status: number | null; stdout: string } {
  const { status, stdout } = spawnSync(process.execPath, [resolve('codegen/build.mjs'), ...args], { cwd: root })
  return { status, stdout: stdout.toString() }
}

const bundler = `import { cpSync, readFileSync } from 'node:fs'
if (readFileSync('src/cli.ts', 'utf8').includes('broken')) process.exit(3)
cpSync('src/cli.ts', 'dist/src/cli.js')`

describe('npm run build', () => {
  it('builds when a source changed or when the last build failed, and says why', { timeout: 60_000 }, () => {
    for (const folder of ['src', 'db', 'codegen']) mkdirSync(join(root, folder))
    writeFileSync(join(root, 'package.json'), '{ "type": "module" }')
    writeFileSync(join(root, 'codegen', 'pack.mjs'), bundler)
    writeFileSync(join(root, 'codegen', 'regenerate.ts'), '')
    symlinkSync(resolve('node_modules'), join(root, 'node_modules'))
    const built = (reason: string) => `Building dist, ${reason} (a few seconds).\n`
    const upToDate = 'The build in dist is up to date; starting it.\n'

    save("console.log('one')\n")
    expect(build('--if-changed')).toEqual({ status: 0, stdout: built('because there is no build yet') })
    expect(output()).toContain('one')
    expect(build('--if-changed')).toEqual({ status: 0, stdout: upToDate })

    utimesSync(module, new Date(), new Date())
    expect(build('--if-changed').stdout).toBe(upToDate)
    expect(build().stdout).toBe(built('as asked'))

    save("console.log('two')\n")
    expect(build('--if-changed').stdout).toBe(built('because the sources have changed'))
    expect(output()).toContain('two')

    save('broken\n')
    expect(build('--if-changed').status).toBe(3)
    save("console.log('two')\n")
    expect(build('--if-changed')).toEqual({ status: 0, stdout: built('because the last build did not end') })

    const left = join(root, 'dist', 'of-an-earlier-build.js')
    writeFileSync(left, '')
    build()
    expect(existsSync(left)).toBe(true)
    build('--clean')
    expect([existsSync(left), existsSync(join(root, 'dist', 'src', 'cli.js'))]).toEqual([false, true])
  })
})

describe('npm pack', () => {
  it('makes a package of less than 4 MB without maps and copies, and the package runs', { timeout: 60_000 }, () => {
    const packed = packProgram(join(installation, 'source'))
    expect(packed.size).toBeLessThan(4_000_000)
    const paths = packed.files
    const linksOf = (page: string): string[] =>
      [...readFileSync(page, 'utf8').matchAll(/\]\((?!https?:)([^)#]+)\)/g)].map(([, path]) =>
        join(dirname(page), path ?? ''),
      )
    const pages = ['README.md', ...linksOf('README.md').filter((path) => path.startsWith('deploy/'))]
    expect(pages.flatMap(linksOf).filter((path) => !paths.some((each) => `${each}/`.startsWith(`${path}/`)))).toEqual(
      [],
    )
    // Outside of `dist` the package has only what a person reads.
    const isText = (path: string): boolean =>
      /^db\/sqlite\/node-20\/|\/README\.md$|\.svg$|\/extensions\.example\.mjs$/.test(path)
    expect(paths.filter((path) => /\.map$|\.ts$|\/\.|^(src|db|codegen|test)\//.test(path) && !isText(path))).toEqual([])
    expect(paths).toEqual(
      expect.arrayContaining(['LICENSE', 'README.md', 'package.json', 'openapi.yaml', 'dist/src/cli.js']),
    )
    // The package has only the bundle and its entry files, and not a file for each module.
    expect(paths.length).toBeLessThan(300)

    const folder = join(installation, 'node_modules', 'accord-crm')
    mkdirSync(folder, { recursive: true })
    execFileSync('tar', ['-xzf', packed.path, '--strip-components=1', '-C', folder])
    const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    expect(manifest.private).toBeUndefined()
    for (const path of Object.values<string>(manifest.exports)) expect(statSync(join(folder, path)).isFile()).toBe(true)
    const program = join(folder, manifest.bin.accord)
    expect(readFileSync(program, 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/)
    expect(execFileSync(process.execPath, [program, '--version'], { encoding: 'utf8' }).trim()).toBe(manifest.version)
  })
})

describe('a package that is imported on demand', () => {
  const sources = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.ts'))
  const imports = sources.flatMap((path) =>
    [
      ...readFileSync(join('src', path), 'utf8').matchAll(/const (\{[^}]*\}|\w+) = await import\('([^./][^']*)'\)/g),
    ].map(([, names = '', name = '']) => ({ path, names, name })),
  )

  it('is imported by its default export if it is CommonJS, because a bundle has no names of it', async () => {
    const load = createRequire(import.meta.url)
    const broken: string[] = []
    for (const { path, names, name } of imports) {
      const { default: whole } = (await import(name)) as { default?: unknown }
      const isCommonJs = whole !== undefined && load(name) === whole
      if (isCommonJs && !/^\{ default: \w+ \}$/.test(names)) broken.push(`${path}: ${name}`)
    }
    expect(imports.length).toBeGreaterThan(8)
    expect(broken).toEqual([])
  })
})
