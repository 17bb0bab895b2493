// A small S3 server on loopback with one bucket in memory. It checks the signature (AWS Signature
// Version 4) of every request and the hash of every body. Tests can make it fail, cut bodies and
// stop listening.
import { createHash, createHmac } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'

export interface S3Object {
  bytes: Buffer
  modified: Date
  contentType: string
}

export interface S3Server {
  readonly endpoint: string
  readonly bucket: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
  /** The objects by key. */
  readonly objects: Map<string, S3Object>
  /** The method and key of each request, in order. */
  readonly requests: string[]
  /** The clock for the dates of objects. */
  now: () => Date
  /** The next matching requests get this status and code. */
  fail(failure: { status: number; code: string; times?: number; method?: string }): void
  /** Cuts the connections of the next downloads after this many bytes. */
  cut(bytes: number, times?: number): void
  /** Stops listening and closes all connections. */
  stop(): Promise<void>
  /** Listens again on the same port. */
  start(): Promise<void>
}

const region = 'us-east-1'
const pageSize = 3

export async function startS3(): Promise<S3Server> {
  const failures: { status: number; code: string; times: number; method: string | undefined }[] = []
  let cuts = { bytes: 0, times: 0 }
  let port = 0
  let http: Server
  const s3: S3Server = {
    get endpoint() {
      return `http://127.0.0.1:${port}`
    },
    bucket: 'crm-files',
    accessKeyId: 'AKIDEXAMPLE',
    secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
    objects: new Map(),
    requests: [],
    now: () => new Date(),
    fail: ({ times = 1, method, ...failure }) => void failures.push({ ...failure, times, method }),
    cut: (bytes, times = 1) => {
      cuts = { bytes, times }
    },
    async stop() {
      http.closeAllConnections()
      await new Promise((resolve) => http.close(resolve))
    },
    async start() {
      http = createServer((request, response) => {
        answer(request, response).catch((error: unknown) => {
          if (error instanceof Refusal) send(response, error.status, errorBody(error.code))
          else response.destroy(error as Error)
        })
      })
      await new Promise<void>((resolve) => http.listen(port, '127.0.0.1', resolve))
      port = (http.address() as AddressInfo).port
    },
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://s3')
    const [bucket, ...rest] = url.pathname.slice(1).split('/').map(decodeURIComponent)
    const key = rest.join('/')
    s3.requests.push(`${request.method} ${key || url.search}`)
    const body = await buffer(request)
    const failure = failures.find((each) => each.method === undefined || each.method === request.method)
    if (failure) {
      if (--failure.times === 0) failures.splice(failures.indexOf(failure), 1)
      throw new Refusal(failure.status, failure.code)
    }
    checkSignature(request, url, body, s3)
    if (bucket !== s3.bucket) throw new Refusal(404, 'NoSuchBucket')
    if (key === '') list(response, url.searchParams)
    else if (request.method === 'PUT') put(request, response, key, body)
    else if (request.method === 'DELETE') {
      s3.objects.delete(key)
      send(response, 204)
    } else {
      const found = s3.objects.get(key)
      if (!found) throw new Refusal(404, 'NoSuchKey')
      get(request, response, found)
    }
  }

  function put(request: IncomingMessage, response: ServerResponse, key: string, body: Buffer): void {
    const source = request.headers['x-amz-copy-source']
    if (typeof source === 'string') copy(response, source, key)
    else {
      s3.objects.set(key, { bytes: body, modified: s3.now(), contentType: request.headers['content-type'] ?? '' })
      send(response, 200)
    }
  }

  function copy(response: ServerResponse, source: string, key: string): void {
    const from = decodeURIComponent(source)
      .replace(/^\//, '')
      .slice(s3.bucket.length + 1)
    const copied = s3.objects.get(from)
    if (!copied) throw new Refusal(404, 'NoSuchKey')
    s3.objects.set(key, { ...copied, modified: s3.now() })
    send(
      response,
      200,
      `<CopyObjectResult><LastModified>${s3.now().toISOString()}</LastModified><ETag>"x"</ETag></CopyObjectResult>`,
    )
  }

  function get(request: IncomingMessage, response: ServerResponse, { bytes, modified, contentType }: S3Object): void {
    const headers = { 'last-modified': modified.toUTCString(), 'content-type': contentType }
    const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? []
    const part = first === undefined ? bytes : bytes.subarray(Number(first), Number(last) + 1)
    response.writeHead(first === undefined ? 200 : 206, { ...headers, 'content-length': part.length })
    if (request.method === 'HEAD') return void response.end()
    if (cuts.times === 0) return void response.end(part)
    cuts.times--
    response.write(part.subarray(0, cuts.bytes), () => response.destroy())
  }

  function list(response: ServerResponse, query: URLSearchParams): void {
    const after = query.get('continuation-token') ?? ''
    const most = Math.min(pageSize, Number(query.get('max-keys') ?? pageSize))
    const keys = [...s3.objects.keys()].filter((key) => key.startsWith(query.get('prefix') ?? '') && key > after)
    const page = keys.sort().slice(0, most)
    const contents = page.map((key) => {
      const { bytes, modified } = s3.objects.get(key) as S3Object
      return `<Contents><Key>${key}</Key><LastModified>${modified.toISOString()}</LastModified><Size>${bytes.length}</Size></Contents>`
    })
    const next = keys.length > most ? `<NextContinuationToken>${page.at(-1)}</NextContinuationToken>` : ''
    const isCut = `<IsTruncated>${keys.length > most}</IsTruncated>`
    send(response, 200, `<ListBucketResult>${isCut}${contents.join('')}${next}</ListBucketResult>`)
  }

  await s3.start()
  return s3
}

class Refusal extends Error {
  readonly status: number
  readonly code: string
  constructor(status: number, code: string) {
    super(code)
    this.status = status
    this.code = code
  }
}

/**
 * Errors of S3 quote the request, which may contain a key. Tests check that `quoted-by-s3` does not
 * appear anywhere.
 */
const errorBody = (code: string): string =>
  `<?xml version="1.0"?><Error><Code>${code}</Code><Message>quoted-by-s3</Message></Error>`

function send(response: ServerResponse, status: number, body = ''): void {
  response.writeHead(status, { 'content-type': 'application/xml', 'content-length': Buffer.byteLength(body) })
  response.end(response.req.method === 'HEAD' ? undefined : body)
}

const sha256 = (bytes: string | Buffer): string => createHash('sha256').update(bytes).digest('hex')
const hmac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest()
const encode = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (each) => `%${each.charCodeAt(0).toString(16).toUpperCase()}`)

/** Throws if the request is not signed with the key of this server or is older than 15 minutes. */
function checkSignature(request: IncomingMessage, url: URL, body: Buffer, s3: S3Server): void {
  const { headers, method = '' } = request
  const [, id, scope = '', signed = '', signature] =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\S+), SignedHeaders=(\S+), Signature=([0-9a-f]{64})$/.exec(
      headers.authorization ?? '',
    ) ?? []
  if (signature === undefined) throw new Refusal(403, 'AccessDenied')
  if (id !== s3.accessKeyId) throw new Refusal(403, 'InvalidAccessKeyId')
  const date = String(headers['x-amz-date'])
  const time = Date.parse(date.replace(/^(....)(..)(..)T(..)(..)(..)Z$/, '$1-$2-$3T$4:$5:$6Z'))
  if (!(Math.abs(Date.now() - time) < 15 * 60_000)) throw new Refusal(403, 'RequestTimeTooSkewed')
  const names = signed.split(';')
  const unsigned = Object.keys(headers).find((name) => name.startsWith('x-amz-') && !names.includes(name))
  if (!names.includes('host') || unsigned !== undefined) throw new Refusal(403, 'AccessDenied')
  const hash = String(headers['x-amz-content-sha256'])
  const query = [...url.searchParams].map(([name, value]) => `${encode(name)}=${encode(value)}`).sort()
  const canonical = [
    method,
    url.pathname,
    query.join('&'),
    ...names.map((name) => `${name}:${String(headers[name]).trim().replace(/ +/g, ' ')}`),
    '',
    signed,
    hash,
  ].join('\n')
  const [day = ''] = scope.split('/')
  if (scope !== `${date.slice(0, 8)}/${region}/s3/aws4_request` || day === '')
    throw new Refusal(400, 'AuthorizationHeaderMalformed')
  const key = ['s3', 'aws4_request'].reduce(hmac, hmac(hmac(`AWS4${s3.secretAccessKey}`, day), region))
  const text = ['AWS4-HMAC-SHA256', date, scope, sha256(canonical)].join('\n')
  if (hmac(key, text).toString('hex') !== signature) throw new Refusal(403, 'SignatureDoesNotMatch')
  // The signed hash must be that of the body, which may be empty.
  if (hash !== sha256(body)) throw new Refusal(400, 'XAmzContentSHA256Mismatch')
}

/** Returns the settings for an Accord server that stores files in the bucket. */
export const bucketSettings = ({ bucket, endpoint, accessKeyId, secretAccessKey }: S3Server, prefix = 'crm') => ({
  filesUrl: { bucket, prefix },
  s3Endpoint: endpoint,
  s3Region: null,
  s3AccessKeyId: accessKeyId,
  s3SecretAccessKey: secretAccessKey,
  s3PathStyle: true,
})
