// Sends the same requests to servers on SQLite and on PostgreSQL, and compares the replies: npm run
// test:differential [-- --seed 1 --requests 100000 --from 0 --dump differences.txt]
import { appendFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { setup } from '../support/global-setup.ts'

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    requests: { type: 'string', default: '100000' },
    from: { type: 'string', default: '0' },
    dump: { type: 'string' },
  },
})

const stop = await setup()
try {
  const { differential } = await import('./run-rounds.ts')
  let found = 0
  const { differences, summary } = await differential({
    seed: Number(values.seed),
    from: Number(values.from),
    requests: Number(values.requests),
    onDifference(text) {
      found++
      if (values.dump !== undefined) appendFileSync(values.dump, `${text}\n\n`)
      if (found <= 50) console.log(`\n${text}`)
    },
    onProgress: (line) => console.log(line),
  })
  console.log(summary)
  process.exitCode = differences === 0 ? 0 : 1
} finally {
  await stop?.()
}
process.exit()
