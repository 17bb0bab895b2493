// The self-checks that every test server runs, for rules of resources that types cannot express.
import type { Verifier } from '../../src/kernel/context.ts'

export const verifier: Verifier = {
  async checkLinks({ noun, readStored, readShown }, save) {
    const [stored, shown] = [JSON.stringify(await readStored()), JSON.stringify(await readShown())]
    const isLinked = await save()
    if (JSON.stringify(await readStored()) !== stored)
      throw new Error(`saveLinks of ${noun} changed the record's own row.`)
    if (!isLinked && JSON.stringify(await readShown()) !== shown)
      throw new Error(`saveLinks of ${noun} changed what the record shows, but returned false.`)
    return isLinked
  },
}
