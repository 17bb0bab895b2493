// `npm start` builds what changed and nothing else: codegen/build.mjs in a scratch project of one
// module.
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, expect, it } from 'vitest'

const root = mkdtempSync(join(tmpdir(), 'accord-build-'))
afterAll(() => rmSync(root, { recursive: true }))

const module = join(root, 'src', 'cli.ts')
const save = (text: string): void => writeFileSync(module, text)
const output = (): string => readFileSync(join(root, 'dist', 'src', 'cli.js'), 'utf8')

function build(...args: string[]): { status: number | null; stdout: string } {
  const { status, stdout } = spawnSync(process.execPath, [resolve('codegen/build.mjs'), ...args], { cwd: root })
  return { status, stdout: stdout.toString() }
}

it('builds when a source changed or when the last build failed, and says so', { timeout: 60_000 }, () => {
  for (const folder of ['src', 'db', 'codegen']) mkdirSync(join(root, folder))
  symlinkSync(resolve('node_modules'), join(root, 'node_modules'))
  const options = { outDir: 'dist', rootDir: '.', module: 'nodenext', target: 'es2023', types: [] }
  writeFileSync(join(root, 'tsconfig.json'), JSON.stringify({ compilerOptions: options, include: ['src'] }))
  writeFileSync(join(root, 'package.json'), '{ "type": "module" }')
  writeFileSync(join(root, 'codegen', 'pack.mjs'), '')

  save("console.log('one')\n")
  expect(build('--if-changed')).toEqual({ status: 0, stdout: 'Building…\n' })
  expect(output()).toContain('one')
  expect(build('--if-changed')).toEqual({ status: 0, stdout: '' })

  utimesSync(module, new Date(), new Date())
  expect(build('--if-changed').stdout).toBe('')
  expect(build().stdout).toBe('Building…\n')

  save("console.log('two')\n")
  expect(build('--if-changed').stdout).toBe('Building…\n')
  expect(output()).toContain('two')

  save('const broken: string = 1\n')
  expect(build('--if-changed')).toMatchObject({ status: 2, stdout: expect.stringContaining('Building…\n') })
  save("console.log('two')\n")
  expect(build('--if-changed')).toEqual({ status: 0, stdout: 'Building…\n' })
})
