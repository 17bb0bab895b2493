// The file stores in a folder and in a bucket behave the same. The bucket is a small S3 server that
// checks signatures and hashes, and fails on demand.
import { createHash, randomBytes } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { storageFaultOf } from '../../../db/storage-errors.ts'
import { openFiles } from '../../../src/installation/open-files.ts'
import type { FileStore, Upload } from '../../../src/kernel/files/file-store.ts'
import { testConfig } from '../../support/app.ts'
import { useNewFolder } from '../../support/folders.ts'
import { startS3 } from '../../support/s3.ts'
import { useNew } from '../../support/using.ts'

const dataDir = useNewFolder('stores')
const s3 = useNew(startS3)

const onDisk = {
  filesUrl: null,
  s3Endpoint: null,
  s3Region: null,
  s3AccessKeyId: null,
  s3SecretAccessKey: null,
  s3PathStyle: true,
}
const inBucket = (changes: { s3SecretAccessKey?: string; s3AccessKeyId?: string; bucket?: string } = {}) => ({
  ...onDisk,
  filesUrl: { bucket: changes.bucket ?? s3.bucket, prefix: "team's/crm" },
  s3Endpoint: s3.endpoint,
  s3AccessKeyId: changes.s3AccessKeyId ?? s3.accessKeyId,
  s3SecretAccessKey: changes.s3SecretAccessKey ?? s3.secretAccessKey,
})

const open = (kind: 'disk' | 's3'): FileStore =>
  openFiles(testConfig({ dataDir, ...(kind === 'disk' ? onDisk : inBucket()) }))

const receive = (files: FileStore, bytes: Buffer | string, name = 'plan.txt'): Promise<Upload> =>
  files.receive(Readable.from([Buffer.from(bytes)]), name)

async function store(files: FileStore, bytes: Buffer | string): Promise<string> {
  const upload = await receive(files, bytes)
  await files.prepare(upload)
  await files.keep(upload)
  await files.discard(upload)
  return upload.sha256
}

async function read(files: FileStore, sha256: string, from = 0, to?: number): Promise<Buffer> {
  const found = await files.find(sha256)
  if (!found) throw new Error('The bytes are not stored.')
  return buffer(found.read(from, to ?? found.size - 1))
}

const all = async <T>(list: AsyncIterable<T>): Promise<T[]> => {
  const found: T[] = []
  for await (const each of list) found.push(each)
  return found
}
const drafts = (): string[] => readdirSync(join(dataDir, 'files', 'tmp'))
/** A bucket has no immediate removal, so its files are moved to the trash. */
const removeOrTrash = (files: FileStore, sha256: string): Promise<void> =>
  files.remove?.(sha256) ?? files.moveToTrash(sha256, new Date())

const inAnHour = (): Date => new Date(Date.now() + 3_600_000)

describe.each(['disk', 's3'] as const)('a store on %s', (kind) => {
  it('gives bytes back as they came, whole and in part, under their hash', async () => {
    const files = open(kind)
    const bytes = randomBytes(3_000_000)
    const sha256 = await store(files, bytes)
    expect(sha256).toBe(createHash('sha256').update(bytes).digest('hex'))
    expect((await read(files, sha256)).equals(bytes)).toBe(true)
    expect((await read(files, sha256, 1_000_000, 1_999_999)).equals(bytes.subarray(1_000_000, 2_000_000))).toBe(true)
    expect(await files.find(sha256)).toMatchObject({ size: bytes.length, isInTrash: false })
    expect(drafts()).toEqual([])
  })

  it('keeps nothing of an upload that is discarded or too large', async () => {
    const files = open(kind)
    await files.discard(await receive(files, 'not wanted'))
    await expect(files.receive(Readable.from([Buffer.alloc(11)]), 'a', 10)).rejects.toThrow('MiB')
    expect([drafts(), await files.count(), s3.objects.size]).toEqual([[], 0, 0])
  })

  it('counts equal bytes once, and removes or trashes them', async () => {
    const files = open(kind)
    const [one, again] = [await store(files, 'same'), await store(files, 'same')]
    for (const text of ['a', 'b', 'c', 'd', 'e', 'f']) await store(files, text)
    expect([one === again, await files.count()]).toEqual([true, 7])
    await removeOrTrash(files, one)
    expect([(await files.find(one))?.isInTrash, await files.count()]).toEqual([files.remove ? undefined : true, 6])
  })

  it('moves bytes to the trash and back, reads them there, and empties it by age', async () => {
    const files = open(kind)
    const [back, gone] = [await store(files, 'wanted again'), await store(files, 'unused')]
    for (const each of [back, gone]) await files.moveToTrash(each, new Date())
    expect((await files.inTrash()).map(({ size }) => size).sort()).toEqual([12, 6])
    expect([await files.count(), (await read(files, back)).toString()]).toEqual([0, 'wanted again'])
    expect(await files.find(back)).toMatchObject({ isInTrash: true })
    await files.takeFromTrash(back)
    expect(await files.find(back)).toMatchObject({ isInTrash: false })
    expect(await files.emptyTrash(new Date(Date.now() - 3_600_000))).toBe(0)
    expect(await files.emptyTrash(inAnHour())).toBe(1)
    expect([await files.inTrash(), await files.find(gone), await files.count()]).toEqual([[], null, 1])
  })

  it('lists bytes by age, all pages of them', async () => {
    const files = open(kind)
    const hashes = await Promise.all(['1', '2', '3', '4', '5', '6', '7', '8'].map((each) => store(files, each)))
    expect(await all(files.keptBefore(new Date(Date.now() - 3_600_000)))).toEqual([])
    expect((await all(files.keptBefore(inAnHour()))).sort()).toEqual(hashes.sort())
  })

  it('stores bytes again that another process removed between sending and keeping them', async () => {
    const [mine, theirs] = [open(kind), open(kind)]
    const sha256 = await store(theirs, 'shared')
    const upload = await receive(mine, 'shared')
    await mine.prepare(upload)
    await removeOrTrash(theirs, sha256)
    await mine.keep(upload)
    await mine.discard(upload)
    expect((await read(theirs, sha256)).toString()).toBe('shared')
  })

  it('has no problem', async () => {
    expect(await open(kind).findProblem()).toBeNull()
  })
})

describe('a bucket', () => {
  it('has the keys of the folder below the prefix, so that files can be moved by copying', async () => {
    const sha256 = await store(open('s3'), 'moved')
    expect([...s3.objects.keys()]).toEqual([`team's/crm/${sha256.slice(0, 2)}/${sha256}`])
    await open('s3').moveToTrash(sha256, new Date())
    expect([...s3.objects.keys()]).toEqual([`team's/crm/trash/${sha256}`])
  })

  it('has the media type of the upload, and sees each upload once', async () => {
    await store(open('s3'), 'a,b\n')
    expect([...s3.objects.values()].map(({ contentType }) => contentType)).toEqual(['text/plain'])
    expect(s3.requests.map((each) => each.split(' ')[0])).toEqual(['PUT', 'HEAD'])
  })

  it('ignores objects that are not its own', async () => {
    const files = open('s3')
    const sha256 = await store(files, 'own')
    for (const key of ['other/file', "team's/crm/readme.txt", `team's/crm/zz/${sha256}`, "team's/crm/trash/x"])
      s3.objects.set(key, { bytes: Buffer.from('x'), modified: new Date(0), contentType: '' })
    expect([await files.count(), await all(files.keptBefore(inAnHour())), await files.inTrash()]).toEqual([
      1,
      [sha256],
      [],
    ])
  })

  it('takes an upload after SlowDown, and goes on behind the byte where a download was cut off', async () => {
    const files = open('s3')
    const bytes = randomBytes(500_000)
    s3.fail({ status: 503, code: 'SlowDown', times: 2, method: 'PUT' })
    const sha256 = await store(files, bytes)
    s3.cut(100_000, 3)
    expect((await read(files, sha256)).equals(bytes)).toBe(true)
  })

  it('ends a download that gets no further with a fault, and never early', async () => {
    const files = open('s3')
    const sha256 = await store(files, randomBytes(1000))
    s3.cut(0, 10)
    const error = await read(files, sha256).catch((cause: unknown) => cause)
    expect(storageFaultOf(error)).toBe('filestorage')
  })

  it.each([
    [
      'is told to wait',
      () => s3.fail({ status: 503, code: 'SlowDown', times: 1_000 }),
      /SlowDown \(503\)|TimeoutError/,
      {},
    ],
    ['is down', () => s3.stop(), /ECONNREFUSED/, {}],
    ['has another secret', () => undefined, /\(403\)/, { s3SecretAccessKey: 'another secret of some length' }],
    ['has an unknown key', () => undefined, /\(403\)/, { s3AccessKeyId: 'AKIDUNKNOWN' }],
    ['names a missing bucket', () => undefined, /NoSuchBucket \(404\)/, { bucket: 'no-such-bucket' }],
  ])(
    'that %s is a storage fault of every operation, with a name and without a key',
    async (_what, begin, told, changes) => {
      const files = openFiles(testConfig({ dataDir, ...inBucket(changes) }))
      const upload = await receive(files, 'text')
      await begin()
      const attempts = [
        () => files.prepare(upload),
        () => files.keep(upload),
        () => files.find(upload.sha256),
        () => files.moveToTrash(upload.sha256, new Date()),
        () => files.count(),
        () => files.emptyTrash(new Date()),
      ]
      for (const attempt of attempts) {
        const error = (await attempt().catch((cause: unknown) => cause)) as Error
        expect([storageFaultOf(error), error.message.startsWith('The file storage s3://')]).toEqual([
          'filestorage',
          true,
        ])
        expect(JSON.stringify(error, Object.getOwnPropertyNames(error))).not.toMatch(/quoted-by-s3|AKID|EXAMPLE/)
      }
      expect(await files.findProblem()).toMatch(told)
      await files.discard(upload)
      if (told.source === 'ECONNREFUSED') {
        await s3.start()
        expect(await files.findProblem()).toBeNull()
      }
    },
    60_000,
  )
})
