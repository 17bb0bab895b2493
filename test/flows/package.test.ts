// Installs the package from a registry in an empty folder, as a user does, and starts it.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { useFolder } from '../support/folders.ts'
import { freePort } from '../support/free-port.ts'
import { packProgram } from '../support/packed-program.ts'
import { openRegistry, type Registry } from '../support/registry.ts'
import { until } from '../support/until.ts'

const folder = useFolder('package')
let registry: Registry
beforeAll(async () => {
  registry = await openRegistry(packProgram(join(folder, 'source'), { hashes: false }).path)
})
afterAll(async () => {
  await registry?.close()
})

describe('npm install accord-crm', { timeout: 180_000 }, () => {
  it('installs the locked versions, compiles nothing, and the program starts', async () => {
    const project = join(folder, 'project')
    mkdirSync(project)
    writeFileSync(join(project, 'package.json'), '{}')
    const options = ['--registry', registry.url, '--cache', join(folder, 'cache'), '--no-audit', '--no-fund']
    // A script would compile, or on Node 20 install the other version of SQLite.
    await promisify(execFile)('npm', ['install', '--ignore-scripts', ...options, 'accord-crm'], { cwd: project })
    const installed = join(project, 'node_modules', 'accord-crm')
    const locked = JSON.parse(readFileSync('package-lock.json', 'utf8')).packages as Record<string, { version: string }>
    const versions = registry.fetched.filter((each) => !each.startsWith('accord-crm@')).sort()
    expect(versions.length).toBeGreaterThan(100)
    expect(versions.length).toBeLessThan(150)
    const known = new Set(
      Object.entries(locked).map(([path, { version }]) => `${path.split('node_modules/').at(-1)}@${version}`),
    )
    expect(versions.filter((each) => !known.has(each))).toEqual([])
    if (Number(process.versions.napi) < 10)
      symlinkSync(resolve('node_modules/.accord-node-20'), join(installed, 'node_modules', '.accord-node-20'))

    const accord = join(project, 'node_modules', '.bin', 'accord')
    const check = () => promisify(execFile)(accord, ['regenerate', '--check'], { cwd: folder })
    expect((await check()).stdout).toBe('Every generated file is up to date.\n')
    const contract = join(installed, 'openapi.yaml')
    const text = readFileSync(contract, 'utf8')
    writeFileSync(contract, text.replace('summary: Create a quote', 'summary: Create an offer'))
    await expect(check()).rejects.toThrow('dist/src/contract/document.gen.json is stale')
    writeFileSync(contract, text)

    const port = await freePort()
    const env = { PATH: process.env.PATH, HOME: folder, ACCORD_PORT: String(port) }
    const server = spawn(accord, ['start'], {
      cwd: folder,
      env,
      stdio: 'ignore',
    })
    const ended = once(server, 'close')
    const page = `http://127.0.0.1:${port}/api/admin/documentation`
    await until(() =>
      fetch(page).then(
        ({ status }) => status === 200,
        () => false,
      ),
    )
    server.kill('SIGTERM')
    expect(await ended).toEqual([0, null])
  })
})
