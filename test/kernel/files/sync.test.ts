// An acknowledged upload survives a power cut: its bytes are synced before it gets its name, and
// its name before the reply.
import { statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { beforeEach, expect, it, vi } from 'vitest'
import { makeFolder, syncPath } from '../../../db/disk.ts'
import { writeFileAtomic } from '../../../src/installation/atomic-file.ts'
import { diskFiles } from '../../../src/kernel/files/disk-files.ts'
import { useNewFolder } from '../../support/folders.ts'

/** The recorded disk operations in order. */
const told = vi.hoisted((): string[][] => [])

vi.mock('node:fs', async (importOriginal) => {
  const fs = await importOriginal<typeof import('node:fs')>()
  const paths = new Map<number, string>()
  const synced = (handle: number, done: (error: Error | null) => void) => {
    told.push(['sync', paths.get(handle) ?? ''])
    fs.fsync(handle, done)
  }
  return {
    ...fs,
    openSync: (...args: Parameters<typeof fs.openSync>) => {
      const handle = fs.openSync(...args)
      paths.set(handle, String(args[0]))
      return handle
    },
    fsyncSync: (handle: number) => {
      told.push(['sync', paths.get(handle) ?? ''])
      fs.fsyncSync(handle)
    },
    writeFileSync: (path: string, text: string, options: { flush?: boolean }) => {
      fs.writeFileSync(path, text, options)
      told.push(['write', path])
      // With this option, Node syncs the file itself.
      if (options.flush) told.push(['sync', path])
    },
    renameSync: (from: string, to: string) => {
      fs.renameSync(from, to)
      told.push(['name', to])
    },
    linkSync: (from: string, to: string) => {
      fs.linkSync(from, to)
      told.push(['name', to])
    },
    createWriteStream: (path: string, options: object) => {
      told.push(['write', path])
      const stream = fs.createWriteStream(path, { ...options, fs: { ...fs, fsync: synced } } as object)
      return stream.on('open', (handle: number) => paths.set(handle, path))
    },
  }
})

vi.mock('node:fs/promises', async (importOriginal) => {
  const fs = await importOriginal<typeof import('node:fs/promises')>()
  return {
    ...fs,
    rename: async (from: string, to: string) => {
      await fs.rename(from, to)
      told.push(['name', to])
    },
    open: async (path: string, flags: string) => {
      const handle = await fs.open(path, flags)
      const sync = handle.sync.bind(handle)
      handle.sync = async () => {
        await sync()
        told.push(['sync', path])
      }
      return handle
    },
  }
})

const folder = useNewFolder('sync')
beforeEach(() => {
  told.length = 0
})

/** Replaces the random names of temporary files by `draft`. */
const named = (): string[] =>
  told.map(([what, path = '']) => `${what} ${/[0-9a-f]{8}-[0-9a-f-]{27}/.test(basename(path)) ? 'draft' : path}`)

it('a file that was sent: its bytes, its name, and the folders that are new with it', async () => {
  const files = diskFiles(join(folder, 'files'))
  const send = async (text: string) => {
    told.length = 0
    const upload = await files.receive(Readable.from([Buffer.from(text)]), 'plan.txt')
    const received = named().splice(0)
    told.length = 0
    await files.keep(upload)
    const path = join(folder, 'files', upload.sha256.slice(0, 2), upload.sha256)
    return { received, kept: named(), path }
  }
  const first = await send('Quarterly figures')
  expect(first.received).toEqual([`sync ${folder}`, 'write draft', 'sync draft'])
  expect(first.kept).toEqual([`sync ${join(folder, 'files')}`, `name ${first.path}`, `sync ${dirname(first.path)}`])
  const again = await send('Quarterly figures')
  expect(again.received).toEqual(['write draft', 'sync draft'])
  expect(again.kept).toEqual([`name ${again.path}`, `sync ${dirname(again.path)}`])
})

it.each([false, true])('a file of the data folder, the first of its name: %s', (isFirst) => {
  const path = join(folder, 'secret')
  expect(writeFileAtomic(path, 'text', { isFirst })).toBe(true)
  expect(named()).toEqual(['write draft', 'sync draft', `name ${path}`, `sync ${folder}`])
})

it('whatever a backup asks for by its path', () => {
  syncPath(folder)
  expect(named()).toEqual([`sync ${folder}`])
})

it('a new data folder and the folders above it that are new with it', () => {
  const path = join(folder, 'a', 'b')
  makeFolder(path, 0o700)
  expect(named()).toEqual([`sync ${join(folder, 'a')}`, `sync ${folder}`])
  expect(statSync(path).mode & 0o777).toBe(0o700)
  told.length = 0
  makeFolder(path, 0o700)
  expect(named()).toEqual([])
})
