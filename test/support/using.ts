// Starts servers for the tests of a file or of a `describe` block, and closes them. Each function
// returns an object that stands for the server, which starts later, when the tests run.
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest'
import { type Caller, type ServerOptions, startServer, type TestServer } from './app.ts'

type Start<T> = () => T | Promise<T>
type Closable = { close(): unknown } | { stop(): unknown }
/** Options that use something which also starts later come from a function. */
type Options = ServerOptions | (() => ServerOptions)

/** Starts one thing for all tests. */
export function useOne<T extends Closable>(start: Start<T>): T {
  const slot = slotFor(start)
  beforeAll(slot.open)
  afterAll(slot.close)
  return slot.content
}

/** Starts a new thing for each test. */
export function useNew<T extends Closable>(start: Start<T>): T {
  const slot = slotFor(start)
  beforeEach(slot.open)
  afterEach(slot.close)
  return slot.content
}

/** Starts one server and runs `setup`. Each test begins with the database that `setup` leaves. */
export function useServer(options?: Options, setup?: (server: TestServer) => unknown): TestServer {
  const server = useSharedServer(options)
  beforeAll(async () => {
    await setup?.(server)
    await server.keep()
  })
  beforeEach(() => server.rewind())
  return server
}

/** Starts one server, whose database all tests share. */
export const useSharedServer = (options?: Options): TestServer => withCallers(useOne(starting(options)))

/** Starts a new server for each test. */
export const useNewServers = (options?: Options): TestServer => withCallers(useNew(starting(options)))

const starting =
  (options: Options = {}) =>
  () =>
    startServer(typeof options === 'function' ? options() : options)

function slotFor<T extends Closable>(start: Start<T>) {
  let content: T | undefined
  return {
    content: standIn<T>(() => {
      if (!content) throw new Error('Use this in a test or a hook: it starts in beforeAll or beforeEach.')
      return content
    }),
    open: async (): Promise<void> => {
      content = await start()
    },
    close: async (): Promise<void> => {
      if (content) await ('close' in content ? content.close() : content.stop())
      content = undefined
    },
  }
}

/** Also gives callers before the start, for a declaration such as `make = given(server.admin)`. */
function withCallers(server: TestServer): TestServer {
  const callers = { admin: standIn<Caller>(() => server.admin), anonymous: standIn<Caller>(() => server.anonymous) }
  return standIn((name) => (name !== undefined && name in callers ? callers : server))
}

/** Returns an object whose members are those of the object that the function returns. */
const standIn = <T extends object>(of: (name?: string | symbol) => object): T =>
  new Proxy({} as T, {
    get: (_, name) => {
      const object = of(name)
      const value = Reflect.get(object, name)
      // A method of a class may need its object, because only that has the private fields.
      return typeof value === 'function' ? value.bind(object) : value
    },
    set: (_, name, value) => Reflect.set(of(name), name, value),
    has: (_, name) => Reflect.has(of(name), name),
    ownKeys: () => Reflect.ownKeys(of()),
    getOwnPropertyDescriptor: (_, name) => {
      const found = Reflect.getOwnPropertyDescriptor(of(name), name)
      return found && { ...found, configurable: true }
    },
  })
