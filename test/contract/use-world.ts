// Starts a world for the tests of a file or of a `describe` block, and closes it.
import { useOne } from '../support/using.ts'
import { startWorld, type World } from './support.ts'

export const useWorld = (options?: Parameters<typeof startWorld>[0]): World =>
  useOne(async () => {
    const world = await startWorld(options)
    return { ...world, close: world.server.close }
  })
