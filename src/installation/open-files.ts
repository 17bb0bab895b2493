// Opens the configured file store: the data folder or an S3 bucket.
import type { Config } from '../config/config.ts'
import { diskFiles } from '../kernel/files/disk-files.ts'
import type { FileStore } from '../kernel/files/file-store.ts'
import { type ObjectStorage, openObjectStorage } from '../kernel/files/s3-client.ts'
import { s3Files } from '../kernel/files/s3-files.ts'
import { filesFolder } from './installation.ts'

/** Returns the configured bucket, or null when files are stored in the data folder. */
export function openBucket(config: Config): ObjectStorage | null {
  const { filesUrl, s3Endpoint, s3Region, s3AccessKeyId, s3SecretAccessKey, s3PathStyle } = config
  if (filesUrl === null) return null
  return openObjectStorage({
    ...filesUrl,
    endpoint: s3Endpoint,
    // S3-compatible servers have no regions, but the request signature needs one.
    region: s3Region ?? (s3Endpoint === null ? null : 'us-east-1'),
    credentials:
      s3AccessKeyId === null || s3SecretAccessKey === null
        ? null
        : { accessKeyId: s3AccessKeyId, secretAccessKey: s3SecretAccessKey },
    isPathStyle: s3PathStyle,
  })
}

/** `assertPlace` throws while the data folder must not be written to. */
export function openFiles(config: Config, assertPlace?: () => void): FileStore {
  const folder = filesFolder(config)
  const bucket = openBucket(config)
  return bucket === null ? diskFiles(folder, assertPlace) : s3Files(bucket, folder, assertPlace)
}
