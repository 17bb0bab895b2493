// Tests the Postman collection with two programs: Newman sends its requests to a server, and
// Bruno's converter imports it.
import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { PostmanCollection } from '../../src/http/docs/postman.ts'

type CollectionItem = PostmanCollection['item'][number]['item'][number]

export interface CollectionAttempt {
  /** The folder in which the packages are installed and files are written. */
  folder: string
  /** The address of a new server. */
  url: string
  password: string
}

interface NewmanReport {
  run: { executions: { item: { id: string }; response?: { code: number } }[] }
}

const itemsOf = ({ item }: PostmanCollection): CollectionItem[] => item.flatMap(({ item: inside }) => inside)

async function load({ url }: CollectionAttempt): Promise<PostmanCollection> {
  return (await (await fetch(`${url}/api/admin/postman.json`)).json()) as PostmanCollection
}

/**
 * Sends the sign-in, all reads and all creations, and returns the result as a sentence. The server
 * does not have the records of the examples, so a read may get 404 and a creation 422 or 409.
 * test/http/postman.test.ts explains each case.
 */
export async function tryNewman(attempt: CollectionAttempt): Promise<string> {
  const { folder, url, password } = attempt
  const collection = await load(attempt)
  const isTried = ({ id, request }: CollectionItem): boolean =>
    id === 'login' || request.method === 'GET' || (/^create/.test(id) && id !== 'createSession')
  const item = collection.item.map((each) => ({ ...each, item: each.item.filter(isTried) }))
  writeFileSync(join(folder, 'collection.json'), JSON.stringify({ ...collection, item }))
  const report = ['-r', 'json', '--reporter-json-export', 'made/newman.json']
  const values = ['--env-var', `password=${password}`, '--env-var', `baseUrl=${url}`]
  const args = ['newman', 'run', 'collection.json', '--suppress-exit-code', ...report, ...values]
  await promisify(execFile)('npx', args, { cwd: folder })
  const { executions } = (JSON.parse(readFileSync(join(folder, 'made/newman.json'), 'utf8')) as NewmanReport).run
  const answers = executions.map(({ item: { id }, response }) => ({ id, status: response?.code ?? 0 }))
  const isFine = ({ id, status }: { id: string; status: number }): boolean => {
    if (status >= 200 && status < 300) return true
    if (/^create/.test(id)) return status === 409 || status === 422
    // The example has no valid signature.
    return status === 404 || (id === 'downloadSignedFile' && status === 422)
  }
  const refused = answers.filter((each) => !isFine(each))
  const wanted = itemsOf({ ...collection, item }).length
  if (refused.length > 0 || answers.length !== wanted)
    throw new Error(`${answers.length} of ${wanted} requests, refused: ${JSON.stringify(refused)}`)
  const good = answers.filter(({ status }) => status < 300).length
  return `${answers.length} requests, ${good} with success`
}

interface BrunoItem {
  name: string
  items?: BrunoItem[]
  request?: {
    method: string
    url: string
    params: { name: string; value: string; type: string; enabled: boolean }[]
    script?: { res?: string }
  }
}

/** Imports the collection like Bruno, and returns the result as a sentence. */
export async function tryBruno(attempt: CollectionAttempt): Promise<string> {
  const collection = await load(attempt)
  const { postmanToBruno } = createRequire(join(attempt.folder, 'package.json'))('@usebruno/converters') as {
    postmanToBruno: (collection: PostmanCollection) => Promise<{ collection: { items: BrunoItem[] } }>
  }
  // Throws when the result does not match Bruno's schema.
  const { collection: imported } = await postmanToBruno(collection)
  const requests = imported.items.flatMap(({ items = [] }) => items)
  const missing = itemsOf(collection).filter(({ name, request: { method, url } }, index) => {
    const found = requests[index]
    const variables = found?.request?.params.filter(({ type }) => type === 'path').map(({ name: key }) => key)
    return (
      found?.name !== name ||
      found.request?.method !== method ||
      String(variables) !== String(url.variable.map(({ key }) => key))
    )
  })
  if (missing.length > 0) throw new Error(`Not imported: ${missing.map(({ id }) => id).join(', ')}`)
  const stores = requests.find(({ name }) => name === 'Sign in')?.request?.script?.res ?? ''
  if (!stores.includes("bru.setCollectionVar('token', reply.data.token)"))
    throw new Error(`The sign-in runs: ${stores}`)
  return `${requests.length} requests imported`
}
