// Commands with files in a bucket: a backup contains the files, a restore uploads them to a bucket,
// and `accord doctor` checks the bucket.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { backupCommand } from '../../src/commands/backup/backup.ts'
import { doctorCommand } from '../../src/commands/doctor/doctor.ts'
import { restoreCommand } from '../../src/commands/restore/restore.ts'
import { placeOf } from '../../src/kernel/files/file-store.ts'
import { testConfig } from '../support/app.ts'
import { useNewFolder } from '../support/folders.ts'
import { file, form } from '../support/form.ts'
import { installed, said } from '../support/installed.ts'
import { bucketSettings, startS3 } from '../support/s3.ts'
import { useNew } from '../support/using.ts'

const root = useNewFolder('bucket')
const s3 = useNew(startS3)
const place = useNew(() => installed(bucketSettings(s3)))

async function upload(content: string): Promise<string> {
  const { body, headers } = await form({ file: file('figures.txt', content) })
  return (await place.server.admin.post('/files', body, { headers })).body.data.sha256
}
const keyOf = (sha256: string, prefix = 'crm'): string => placeOf(prefix, sha256)
const backUp = async (): Promise<{ path: string; stderr: string }> => {
  const { stdout, stderr } = await said(() => backupCommand(place.config, {}))
  return { path: /^Backed up to (.*)$/m.exec(stdout)?.[1] ?? '', stderr }
}

describe('accord backup', () => {
  it('copies the contents of files out of the bucket', async () => {
    const sha256 = await upload('Quarterly figures')
    const { path, stderr } = await backUp()
    expect(stderr).toBe('')
    expect(readFileSync(placeOf(join(path, 'files'), sha256), 'utf8')).toBe('Quarterly figures')
  })

  it('says which contents the bucket lacks, and fails when the bucket does not answer', async () => {
    s3.objects.delete(keyOf(await upload('Quarterly figures')))
    expect((await backUp()).stderr).toContain('The contents of 1 files are missing from the bucket')
    await s3.stop()
    const failed = await said(() => backupCommand(place.config, {}))
    expect([failed.code, failed.stderr]).toEqual([
      1,
      expect.stringContaining('s3://crm-files/crm failed: ECONNREFUSED'),
    ])
    await s3.start()
  })
})

describe('accord restore', () => {
  it('brings the contents into another bucket, and a server serves them', async () => {
    const sha256 = await upload('Quarterly figures')
    const { path } = await backUp()
    const dataDir = join(root, 'data')
    const databaseUrl = `sqlite:${join(dataDir, 'accord.db')}`
    const config = testConfig({ dataDir, databaseUrl, ...bucketSettings(s3, 'restored') })
    const { code, stdout, stderr } = await said(() => restoreCommand(config, path, {}))
    expect([code, stderr, stdout]).toEqual([0, '', expect.stringContaining('and s3://crm-files/restored in ')])
    expect(s3.objects.get(keyOf(sha256, 'restored'))?.bytes.toString()).toBe('Quarterly figures')
    expect((await said(() => doctorCommand(config, { deep: true }))).stdout).toContain('ok      Files\n')
  })

  it('changes nothing when the bucket fails, and sends only what is missing', async () => {
    await upload('Quarterly figures')
    const { path } = await backUp()
    const dataDir = join(root, 'data')
    const config = testConfig({ dataDir, databaseUrl: `sqlite:${join(dataDir, 'accord.db')}`, ...bucketSettings(s3) })
    await s3.stop()
    const failed = await said(() => restoreCommand(config, path, {}))
    expect([failed.code, failed.stderr]).toEqual([1, expect.stringContaining('The file storage s3://crm-files/crm')])
    expect(readdirSync(dataDir)).toEqual([])
    await s3.start()
    s3.requests.length = 0
    expect((await said(() => restoreCommand(config, path, {}))).code).toBe(0)
    expect(s3.requests.filter((each) => each.startsWith('PUT'))).toEqual([])
  })

  it('brings the files of a bucket back to a disk', async () => {
    const sha256 = await upload('Quarterly figures')
    const { path } = await backUp()
    const dataDir = join(root, 'data')
    const config = testConfig({ dataDir, databaseUrl: `sqlite:${join(dataDir, 'accord.db')}` })
    expect((await said(() => restoreCommand(config, path, {}))).code).toBe(0)
    expect(readFileSync(placeOf(join(dataDir, 'files'), sha256), 'utf8')).toBe('Quarterly figures')
  })
})

describe('accord doctor', () => {
  const lineOf = async (what: string): Promise<string | undefined> => {
    const { stdout } = await said(() => doctorCommand(place.config, { deep: true }))
    return stdout.split('\n').find((line) => line.slice(8).startsWith(what))
  }

  it('tries all operations and leaves nothing', async () => {
    await upload('Quarterly figures')
    const before = [...s3.objects.keys()]
    expect(await lineOf('File storage')).toBe('ok      File storage s3://crm-files/crm')
    expect([...s3.objects.keys()]).toEqual(before)
  })

  it('names the operation that is refused, and the answer', async () => {
    s3.fail({ status: 403, code: 'AccessDenied', method: 'PUT' })
    expect(await lineOf('File storage')).toBe(
      'BROKEN  File storage s3://crm-files/crm: this server could not write an object. The file storage s3://crm-files/crm failed: AccessDenied (403). Check ACCORD_FILES_URL, ACCORD_S3_ENDPOINT and the credentials.',
    )
  })

  it('finds contents that are missing or were changed', async () => {
    const [gone, changed] = [await upload('gone'), await upload('whole')]
    s3.objects.delete(keyOf(gone))
    const object = s3.objects.get(keyOf(changed))
    if (object) object.bytes = Buffer.from('other')
    expect(await lineOf('Files')).toBe(
      'BROKEN  Files: the contents of file 2 were changed, file 1 is missing. Copy them from a backup: files/<first two of the hash>/<hash>, to s3://crm-files/crm.',
    )
  })
})
