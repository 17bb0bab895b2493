// Failed starts with a full disk or files of another user: the error names the cause, and nothing
// is changed.
import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, closeSync, mkdirSync, openSync, readdirSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { isDiskFull } from '../../src/installation/access-problems.ts'
import { openData } from '../../src/installation/data-folder.ts'
import { testConfig } from '../support/app.ts'
import { useNewFolder } from '../support/folders.ts'
import { fromSource } from '../support/measuring.ts'

const unprivileged = 65_534
const folder = useNewFolder('access')
let dataDir: string
let isMounted = false
beforeEach(() => {
  dataDir = join(folder, 'data')
  mkdirSync(dataDir)
})
afterEach(() => {
  if (isMounted) spawnSync('umount', ['--lazy', dataDir])
  isMounted = false
})
const configOf = () => testConfig({ dataDir, databaseUrl: `sqlite:${join(dataDir, 'accord.db')}` })

/** Opens the data folder in a process that is not root, and returns its output. */
function openAsOther(): string {
  const source = pathToFileURL(join(import.meta.dirname, '../../src/installation/data-folder.ts')).href
  const program = `
    import { openData } from ${JSON.stringify(source)}
    if (process.getuid() === 0) process.setuid(${unprivileged})
    try {
      await openData(${JSON.stringify(configOf())})
      console.log('opened')
    } catch (error) {
      console.log(error.message)
    }
    process.exit()`
  const { stdout, stderr } = spawnSync(process.execPath, [...fromSource, '--input-type=module', '-e', program], {
    encoding: 'utf8',
  })
  return stdout === '' ? stderr : stdout
}

describe('a data folder', () => {
  it('with a database that another user owns is refused, with the file and both users', async () => {
    await (await openData(configOf())).close()
    const file = join(dataDir, 'accord.db')
    if (process.getuid?.() === 0) {
      chmodSync(folder, 0o755)
      for (const name of readdirSync(dataDir)) chownSync(join(dataDir, name), unprivileged, unprivileged)
      chownSync(dataDir, unprivileged, unprivileged)
      expect(openAsOther()).toContain('opened')
      chownSync(file, 0, 0)
      chmodSync(file, 0o644)
      expect(openAsOther()).toContain(
        `is ${dataDir}, and ${file} cannot be written: it belongs to the user with id 0, and this process runs as ${unprivileged}.`,
      )
    } else {
      chmodSync(file, 0o444)
      expect(openAsOther()).toContain(`${file} cannot be written: its permissions are 444.`)
    }
  })

  it('on a full disk is refused with that cause', async () => {
    isMounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=16m', 'tmpfs', dataDir]).status === 0
    // Without the permission to mount, the test cannot fill a disk.
    if (!isMounted) return expect(isDiskFull(dataDir)).toBe(false)
    const store = await openData(configOf())
    await store.close()
    const ballast = openSync(join(dataDir, 'ballast'), 'w')
    for (let size = 1024 * 1024; size >= 512; ) {
      try {
        writeSync(ballast, Buffer.alloc(size, 1))
      } catch {
        size /= 2
      }
    }
    closeSync(ballast)
    const before = readdirSync(dataDir)
    await expect(openData(configOf())).rejects.toThrow(
      `the disk of ${dataDir} is full. Free some space, then start again.`,
    )
    expect(readdirSync(dataDir).filter((name) => !before.includes(name) && !name.startsWith('accord.db'))).toEqual([])
    rmSync(join(dataDir, 'ballast'))
    await (await openData(configOf())).close()
  })
})
