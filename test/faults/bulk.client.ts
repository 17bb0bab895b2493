// The client of bulk.kill.test.ts: sends a file until each line is answered.

import { bulkCommand } from '../../src/commands/bulk.ts'
import { readConfig } from '../../src/config/config.ts'

const [url, token, file, output] = process.argv.slice(2)
const { config } = readConfig({})
for (;;) {
  try {
    await bulkCommand(config, file ?? '', { url, token, output, onError: 'continue' } as never)
    break
  } catch {
    // The server restarts.
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}
