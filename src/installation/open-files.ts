// Opens the file store that the configuration names: the data folder or a bucket.
import type { Config } from '../config/config.ts'
import { diskFiles } from '../kernel/files/disk-files.ts'
import type { FileStore } from '../kernel/files/file-store.ts'
import { type ObjectStorage, openObjectStorage } from '../kernel/files/s3-client.ts'
import { s3Files } from '../kernel/files/s3-files.ts'
import { filesFolder } from './installation.ts'

/** Returns the configured bucket, or null when files are in the data folder. */
export function openBucket(config: Config): ObjectStorage | null {
  const { filesUrl, s3Endpoint, s3Region, s3AccessKeyId, s3SecretAccessKey, s3PathStyle } = config
  if (filesUrl === null) return null
  return openObjectStorage({
    ...filesUrl,
    endpoint: s3Endpoint,
    // Servers other than that of AWS have no regions, but the signature needs a name.
    region: s3Region ?? (s3Endpoint === null ? null : 'us-east-1'),
    credentials:
      s3AccessKeyId === null || s3SecretAccessKey === null
        ? null
        : { accessKeyId: s3AccessKeyId, secretAccessKey: s3SecretAccessKey },
    isPathStyle: s3PathStyle,
  })
}

/** `assertPlace` must throw while the data folder must not be written to. */
export function openFiles(config: Config, assertPlace?: () => void): FileStore {
  const folder = filesFolder(config)
  const bucket = openBucket(config)
  return bucket === null ? diskFiles(folder, assertPlace) : s3Files(bucket, folder, assertPlace)
}
