// The bodies that the documentation page fills in for the operations that create: on a new
// installation each works as it stands, and a lead works again and again.
import { expect, it } from 'vitest'
import { outlineOf, tagDocument } from '../../src/http/docs/page-document.ts'
import type { ServedDocument } from '../../src/http/docs/served-document.ts'
import { contract } from '../support/contract.ts'
import { useSharedServer } from '../support/using.ts'

type Body = { content?: Record<string, { example?: object }> }
type Paths = Record<string, { post?: { operationId: string; requestBody?: Body } }>

/** An import needs the upload of a file, and a session a CSRF token. */
const needMore = ['createImport', 'createSession']

const source = contract as unknown as ServedDocument
const creates = outlineOf(source)
  .flatMap((tag) => Object.entries((tagDocument(source, tag) as { paths: Paths }).paths))
  .flatMap(([path, { post }]) => {
    const example = post?.requestBody?.content?.['application/json']?.example
    const id = post?.operationId ?? ''
    const isCreate = id.startsWith('create') && !path.includes('{') && !needMore.includes(id)
    return isCreate && example !== undefined ? [{ id, path: path.replace('/api/admin', ''), example }] : []
  })

const server = useSharedServer()

it('creates a record with each of them, the person and the template of others first', async () => {
  // A quote refers to the person, and a campaign to the template.
  const order = ['createPerson', 'createEmailTemplate']
  const sorted = creates.toSorted((a, b) => order.indexOf(b.id) - order.indexOf(a.id))
  expect(sorted.length).toBeGreaterThan(20)
  for (const { id, path, example } of sorted) {
    const { status, body } = await server.admin.post(path, example)
    expect([id, status, body.errors]).toEqual([id, 201, undefined])
  }
})

it('creates a lead a second time', async () => {
  const lead = creates.find(({ id }) => id === 'createLead')
  for (const _turn of [1, 2]) expect((await server.admin.post('/leads', lead?.example)).status).toBe(201)
})
