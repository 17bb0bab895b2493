// Wraps the AWS client for S3 with the few operations that a file store needs. The package is
// loaded with the first operation, because most installations store files on a disk.
import { createReadStream } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { S3Client } from '@aws-sdk/client-s3'

/**
 * A bucket and its access data. For a null value, the AWS client uses its default sources, such as
 * environment variables and instance roles.
 */
export interface S3Location {
  readonly bucket: string
  /** The beginning of all keys, without slashes at its ends; may be empty. */
  readonly prefix: string
  readonly endpoint: string | null
  readonly region: string | null
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string } | null
  /** Whether the bucket is part of the path instead of the host name. */
  readonly isPathStyle: boolean
}

export interface StoredObject {
  readonly key: string
  readonly size: number
  readonly modified: Date
}

export interface PutFacts {
  readonly size: number
  readonly sha256: string
  readonly contentType?: string
}

/** Keys are relative to the prefix. All functions throw `FileStorageError`. */
export interface ObjectStorage {
  readonly url: string
  /**
   * Stores a local file. Sends the hash, so that the storage refuses bytes that were changed on the
   * way.
   */
  put(key: string, path: string, facts: PutFacts): Promise<void>
  /** Returns the size of the object, or null when there is none. */
  sizeOf(key: string): Promise<number | null>
  /** Returns the bytes from `start` to `end`, both included. */
  read(key: string, start: number, end: number): AsyncGenerator<Buffer>
  /** Copies an object within the bucket. Returns false when it does not exist. */
  copy(from: string, to: string): Promise<boolean>
  remove(key: string): Promise<void>
  list(prefix: string): AsyncGenerator<StoredObject>
  /** Returns the first object below the prefix, or null. */
  first(prefix: string): Promise<StoredObject | null>
}

/**
 * A request to the file storage failed. The message contains the error name and the status, but no
 * text of the response, which may repeat the access key of the request.
 */
export class FileStorageError extends Error {
  /** `storageFaultOf` recognizes the code. */
  readonly code = 'ERR_FILE_STORAGE'
  /** Whether the storage has no such object. */
  readonly isMissing: boolean

  constructor(message: string, isMissing = false) {
    super(message)
    this.isMissing = isMissing
  }
}

const connectMs = 3_000
/** A connection without data for this number of milliseconds counts as broken. */
const idleMs = 10_000
/** The maximum milliseconds of an operation that transfers no file. */
const shortMs = 5_000
/** The maximum milliseconds of a copy within the bucket, and of one page of a list. */
const longMs = 15_000
/** The maximum milliseconds for sending a file of at most 31 MiB. */
const uploadMs = 60_000
/**
 * The maximum milliseconds of the check for `/readyz`, which must end before the load balancer
 * stops waiting.
 */
const probeMs = 2_000
const maxAttempts = 3
const firstPauseMs = 100

type Sdk = typeof import('@aws-sdk/client-s3')

export const openObjectStorage = (location: S3Location): ObjectStorage => new Bucket(location)

class Bucket implements ObjectStorage {
  readonly url: string
  readonly #location: S3Location
  #opened: Promise<{ client: S3Client; sdk: Sdk }> | undefined

  constructor(location: S3Location) {
    const { bucket, prefix } = location
    this.#location = location
    this.url = `s3://${prefix === '' ? bucket : `${bucket}/${prefix}`}`
  }

  put(key: string, path: string, { size, sha256, contentType }: PutFacts): Promise<void> {
    return this.#run(async (client, { PutObjectCommand }) => {
      for (let attempt = 1; ; attempt++) {
        const Body = createReadStream(path)
        const facts = { ContentLength: size, ContentType: contentType }
        const command = new PutObjectCommand({ ...this.#at(key), ...facts, Body })
        // With this header, the signature covers the bytes and not only the headers.
        const signed = { 'x-amz-content-sha256': sha256 }
        command.middlewareStack.add(
          (next) => (args) => {
            Object.assign((args.request as { headers: object }).headers, signed)
            return next(args)
          },
          { step: 'build' },
        )
        try {
          await client.send(command, within(uploadMs))
          return
        } catch (error) {
          // This loop retries, because the AWS client does not retry a request whose body is a
          // stream.
          if (attempt === maxAttempts || !isTransient(error)) throw error
          await sleep(firstPauseMs * 2 ** attempt)
        } finally {
          Body.destroy()
        }
      }
    })
  }

  sizeOf(key: string): Promise<number | null> {
    return this.#run((client, { HeadObjectCommand }) =>
      unlessMissing(async () => {
        const { ContentLength } = await client.send(new HeadObjectCommand(this.#at(key)), within(shortMs))
        return ContentLength ?? 0
      }),
    )
  }

  async *read(key: string, start: number, end: number): AsyncGenerator<Buffer> {
    let next = start
    // After a broken connection, a new request continues after the last received byte.
    for (let failures = 0; next <= end; ) {
      const before = next
      try {
        for await (const chunk of await this.#open(key, `bytes=${next}-${end}`)) {
          next += chunk.length
          yield chunk
        }
        if (next <= end) throw new Error('The body ended early.')
      } catch (error) {
        failures = next > before ? 1 : failures + 1
        // A FileStorageError comes from a request that the AWS client has already retried.
        if (error instanceof FileStorageError || failures === maxAttempts) throw asStorageError(this.url, error)
      }
    }
  }

  copy(from: string, to: string): Promise<boolean> {
    return this.#run(async (client, { CopyObjectCommand }) => {
      const { Bucket, Key } = this.#at(from)
      const CopySource = [Bucket, ...Key.split('/')].map(encodeURIComponent).join('/')
      const command = new CopyObjectCommand({ ...this.#at(to), CopySource })
      return (await unlessMissing(() => client.send(command, within(longMs)))) !== null
    })
  }

  remove(key: string): Promise<void> {
    return this.#run(async (client, { DeleteObjectCommand }) => {
      await client.send(new DeleteObjectCommand(this.#at(key)), within(shortMs))
    })
  }

  async *list(prefix: string): AsyncGenerator<StoredObject> {
    let from: string | undefined
    do {
      const page = await this.#page(prefix, { ContinuationToken: from }, longMs)
      yield* page.objects
      from = page.next
    } while (from !== undefined)
  }

  async first(prefix: string): Promise<StoredObject | null> {
    return (await this.#page(prefix, { MaxKeys: 1 }, probeMs)).objects[0] ?? null
  }

  #at(key: string): { Bucket: string; Key: string } {
    const { bucket, prefix } = this.#location
    return { Bucket: bucket, Key: prefix === '' ? key : `${prefix}/${key}` }
  }

  #open(key: string, Range: string): Promise<AsyncIterable<Buffer>> {
    return this.#run(async (client, { GetObjectCommand }) => {
      const { Body } = await client.send(new GetObjectCommand({ ...this.#at(key), Range }))
      return Body as unknown as AsyncIterable<Buffer>
    })
  }

  #page(
    prefix: string,
    part: { ContinuationToken?: string | undefined; MaxKeys?: number },
    ms: number,
  ): Promise<{ objects: StoredObject[]; next: string | undefined }> {
    return this.#run(async (client, { ListObjectsV2Command }) => {
      const { Bucket, Key: Prefix } = this.#at(prefix)
      const command = new ListObjectsV2Command({ Bucket, Prefix, ...part })
      const { Contents = [], NextContinuationToken: next } = await client.send(command, within(ms))
      const above = this.#at('').Key.length
      return {
        objects: Contents.map(({ Key = '', Size = 0, LastModified = new Date(0) }) => ({
          key: Key.slice(above),
          size: Size,
          modified: LastModified,
        })),
        next,
      }
    })
  }

  /** Runs an operation of the AWS client and converts its errors to `FileStorageError`. */
  async #run<T>(work: (client: S3Client, sdk: Sdk) => Promise<T>): Promise<T> {
    this.#opened ??= open(this.#location)
    const { client, sdk } = await this.#opened
    try {
      return await work(client, sdk)
    } catch (error) {
      throw asStorageError(this.url, error)
    }
  }
}

/**
 * Returns null when the object does not exist. Throws when the bucket does not exist, if the
 * response distinguishes the two cases.
 */
const unlessMissing = <T>(work: () => Promise<T>): Promise<T | null> =>
  work().catch((error: unknown) => {
    if (isMissingObject(error)) return null
    throw error
  })

const isMissingObject = (error: unknown): boolean => /^(NotFound|NoSuchKey)$/.test((error as Error).name)

async function open({
  endpoint,
  region,
  credentials,
  isPathStyle,
}: S3Location): Promise<{ client: S3Client; sdk: Sdk }> {
  const { default: sdk } = await import('@aws-sdk/client-s3')
  const silent = (): void => undefined
  const client = new sdk.S3Client({
    ...(endpoint !== null && { endpoint }),
    ...(region !== null && { region }),
    ...(credentials !== null && { credentials }),
    forcePathStyle: isPathStyle,
    maxAttempts,
    // Many S3-compatible servers do not support the additional checksums of AWS. They are not
    // needed, because the signature of an upload covers its bytes.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: { connectionTimeout: connectMs, socketTimeout: idleMs },
    // Keeps the client from logging to the console.
    logger: { trace: silent, debug: silent, info: silent, warn: silent, error: silent },
  })
  return { client, sdk }
}

const within = (ms: number): { abortSignal: AbortSignal } => ({ abortSignal: AbortSignal.timeout(ms) })

interface ClientError {
  readonly name?: string
  readonly code?: string
  readonly $metadata?: { readonly httpStatusCode?: number }
}

function isTransient(error: unknown): boolean {
  const status = (error as ClientError).$metadata?.httpStatusCode
  return status === undefined || status >= 500 || status === 429
}

function asStorageError(url: string, error: unknown): FileStorageError {
  if (error instanceof FileStorageError) return error
  const { name = 'Error', code, $metadata } = error as ClientError
  const status = $metadata?.httpStatusCode
  // A network error has the generic name `Error`, and its code is more specific.
  const what = name === 'Error' && code !== undefined ? code : name === 'AbortError' ? 'TimeoutError' : name
  const text = `The file storage ${url} failed: ${what}${status === undefined ? '' : ` (${status})`}`
  return new FileStorageError(text, isMissingObject(error))
}
