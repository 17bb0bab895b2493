// Sends hostile requests to all operations and checks each reply against the contract. The same
// seed generates the same requests (README.md): npm run test:fuzz [-- --seed 1 --requests 100000
// --only createLead,listLeads --from 0 --dump findings.txt]
import { appendFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { fact } from '../support/schema.ts'
import { fuzz } from './fuzz.ts'

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    requests: { type: 'string', default: '100000' },
    from: { type: 'string', default: '0' },
    only: { type: 'string', default: '' },
    dump: { type: 'string' },
  },
})
const only = values.only.split(',').filter(Boolean)
for (const id of only) fact(id)
const from = Number(values.from)

Error.stackTraceLimit = 60
let found = 0
const result = await fuzz({
  seed: Number(values.seed),
  from,
  requests: Number(values.requests),
  only,
  onFinding(text) {
    found++
    if (values.dump !== undefined) appendFileSync(values.dump, `${text}\n\n`)
    if (found <= 50) console.log(`\n${text}`)
  },
  onProgress: (line) => console.log(line),
})
console.log(result.summary)
process.exit(result.findings === 0 ? 0 : 1)
