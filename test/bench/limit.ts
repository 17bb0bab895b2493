// The limit server, a lower bound of the cost: a minimal handwritten Fastify server for the
// requests of the benchmark. It returns the same bytes from the same database with prepared
// statements and JSON.stringify. It has no contract, permissions or log, and one constant token. It
// does not cache rows or replies.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import Fastify, { type FastifyRequest } from 'fastify'
import { openDatabase } from './limit.database.ts'
import { Refused } from './limit.events.ts'
import { kanban } from './limit.kanban.ts'
import { createLogin } from './limit.login.ts'
import { createReader } from './limit.read.ts'
import { createWriter } from './limit.write.ts'

const { values: settings } = parseArgs({
  options: { folder: { type: 'string', default: '.' }, base: { type: 'string', default: 'http://127.0.0.1' } },
})
const { token } = JSON.parse(readFileSync(join(settings.folder, 'bench.json'), 'utf8')) as { token: string }
const secret = readFileSync(join(settings.folder, 'data/secret'), 'utf8').trim()
const database = openDatabase(settings.folder)
const reader = createReader(database, { base: settings.base, secret })
const writer = createWriter(database, reader, { tokenId: Number(token.split('|')[0]) })
const login = createLogin(database)
const authorization = `Bearer ${token}`

const http = Fastify({ logger: false })
const json = 'application/json; charset=utf-8'

http.addHook('onRequest', (request, reply, done) => {
  if (request.headers.authorization === authorization || request.url === '/api/admin/login') done()
  else reply.code(401).send()
})
http.addHook('onSend', (_request, reply, _payload, done) => {
  reply.header('content-type', json)
  done()
})
http.setErrorHandler((error, _request, reply) => {
  reply.code(error instanceof Refused ? 422 : 500).send(JSON.stringify({ message: String(error) }))
})

const searchOf = ({ url }: FastifyRequest): string => (url.includes('?') ? url.slice(url.indexOf('?') + 1) : '')
type Any = Parameters<typeof writer.create>[0]

http.get('/healthz', (_request, reply) => reply.send('{}'))
http.get('/api/admin/leads', (request, reply) => {
  const query = request.query as Record<string, string>
  reply.send(JSON.stringify(reader.list('/api/admin/leads', searchOf(request), query)))
})
http.get('/api/admin/leads/kanban', (_request, reply) => reply.send(JSON.stringify(kanban(reader))))
http.get<{ Params: { id: string } }>('/api/admin/leads/:id', ({ params }, reply) => {
  const data = reader.show(Number(params.id))
  if (data === undefined) reply.code(404).send('{}')
  else reply.send(JSON.stringify({ data }))
})
http.post('/api/admin/leads', ({ body, ip }, reply) => {
  const data = writer.create(body as Any, ip)
  reply.code(201).send(JSON.stringify({ data, message: 'Lead created.' }))
})
http.put<{ Params: { id: string } }>('/api/admin/leads/:id', ({ params, body, ip }, reply) => {
  const data = writer.update(Number(params.id), body as Any, ip)
  reply.send(JSON.stringify({ data, message: 'Lead updated.' }))
})
http.put<{ Params: { id: string } }>('/api/admin/leads/:id/stage', ({ params, body, ip }, reply) => {
  const data = writer.moveToStage(Number(params.id), body as Parameters<typeof writer.moveToStage>[1], ip)
  reply.send(JSON.stringify({ data, message: 'Lead moved.' }))
})
http.post('/api/admin/login', async ({ body, ip }, reply) => {
  const signedIn = await login(body as Parameters<typeof login>[0], ip)
  return reply.send(JSON.stringify(signedIn))
})

process.on('SIGTERM', () => void http.close().then(() => database.close()))
await http.listen({ host: '127.0.0.1', port: 0, listenTextResolver: (address) => address })
const address = http.server.address()
console.log(`listens on http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`)
