// A small IMAP4rev1 server on loopback for clients that list folders, search and fetch. It
// misbehaves on demand and records whether a client marked a message as read.
import { createServer, type Socket } from 'node:net'

export type ImapMode = 'accept' | 'refuse' | 'hang' | 'hang-fetch' | 'drop' | 'huge'

export interface ImapFolder {
  path: string
  /** Folder attributes such as `\\All` or `\\HasNoChildren`. */
  attributes: string[]
  uidValidity: number
  messages: ImapMessage[]
}

export interface ImapMessage {
  uid: number
  raw: Buffer
  date: Date
  flags: string[]
}

export interface ImapServer {
  host: string
  port: number
  username: string
  password: string
  /**
   * Sets the behavior: `refuse` refuses logins, `hang` sends nothing, `hang-fetch` does not respond
   * to FETCH, `drop` closes the connection in the middle of a message, `huge` announces a size that
   * is too large.
   */
  behave(mode: ImapMode): void
  addFolder(path: string, attributes?: string[]): ImapFolder
  folder(path: string): ImapFolder
  /** Adds a message and returns its uid. */
  deliver(path: string, raw: string | Buffer, about?: { date?: Date; flags?: string[] }): number
  /** Gives all messages of a folder new uids, as after the restore of a server. */
  renumber(path: string): void
  /** The received commands, without tags and without the credentials of logins. */
  commands: string[]
  connections(): { total: number; open: number }
  close(): Promise<void>
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const two = (value: number): string => String(value).padStart(2, '0')
const internalDate = (date: Date): string =>
  `${two(date.getUTCDate())}-${months[date.getUTCMonth()]}-${date.getUTCFullYear()} ${two(date.getUTCHours())}:${two(date.getUTCMinutes())}:${two(date.getUTCSeconds())} +0000`
const unquoted = (text: string): string => text.replace(/^"(.*)"$/s, '$1').replaceAll(/\\(.)/g, '$1')

/** Returns the uids in a set such as `3:*,9`. `*` is the highest uid. */
function inSet(set: string, uids: readonly number[]): Set<number> {
  const last = uids.at(-1) ?? 0
  const number = (text: string): number => (text === '*' ? last : Number(text))
  const ranges = set.split(',').map((range) => {
    const [from = '*', to = from] = range.split(':')
    return [number(from), number(to)].sort((one, other) => one - other)
  })
  return new Set(uids.filter((uid) => ranges.some(([from = 0, to = 0]) => uid >= from && uid <= to)))
}

export async function startImap({ username = 'crm', password = 'p"ass w\\rd' } = {}): Promise<ImapServer> {
  let mode: ImapMode = 'accept'
  let total = 0
  const sockets = new Set<Socket>()
  const folders = new Map<string, ImapFolder>()
  const commands: string[] = []

  const server = createServer((socket) => {
    total++
    sockets.add(socket)
    socket.setNoDelay(true)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => undefined)
    if (mode !== 'hang') socket.write('* OK ready\r\n')
    converse(socket)
  })

  function converse(socket: Socket): void {
    let selected: ImapFolder | null = null
    let waiting = ''
    let loginTag: string | null = null
    const say = (line: string): boolean => socket.write(`${line}\r\n`)
    const login = (tag: string, user: string, pass: string): void => {
      const isKnown = mode !== 'refuse' && user === username && pass === password
      // The refusal repeats the credentials, as some servers do.
      say(isKnown ? `${tag} OK done` : `${tag} NO [AUTHENTICATIONFAILED] no entry for ${user} with ${pass}`)
    }

    function fetch(tag: string, set: string, items: string): void {
      const messages = selected?.messages ?? []
      const wanted = inSet(
        set,
        messages.map(({ uid }) => uid),
      )
      if (mode === 'hang-fetch') return
      for (const [index, message] of messages.entries()) {
        if (!wanted.has(message.uid)) continue
        const { uid, raw, flags, date } = message
        const facts = [`UID ${uid}`]
        if (/\bFLAGS\b/i.test(items)) facts.push(`FLAGS (${flags.join(' ')})`)
        if (/INTERNALDATE/i.test(items)) facts.push(`INTERNALDATE "${internalDate(date)}"`)
        if (/RFC822\.SIZE/i.test(items)) facts.push(`RFC822.SIZE ${mode === 'huge' ? 40_000_000 : raw.length}`)
        if (/\bBODY\[\]/i.test(items)) flags.push('\\Seen')
        if (!/BODY(\.PEEK)?\[\]/i.test(items)) {
          say(`* ${index + 1} FETCH (${facts.join(' ')})`)
          continue
        }
        const end = /BODY(?:\.PEEK)?\[\]<0\.(\d+)>/i.exec(items)?.[1]
        const sent = end === undefined ? raw : raw.subarray(0, Number(end))
        const part = end === undefined ? '' : '<0>'
        socket.write(`* ${index + 1} FETCH (${facts.join(' ')} BODY[]${part} {${sent.length}}\r\n`)
        if (mode === 'drop') {
          socket.write(raw.subarray(0, raw.length / 2), () => socket.destroy())
          return
        }
        socket.write(sent)
        say(')')
      }
      say(`${tag} OK done`)
    }

    function search(tag: string, criteria: string): void {
      const since = /SINCE "?(\d+)-(\w+)-(\d+)/i.exec(criteria)
      const from = since ? Date.UTC(Number(since[3]), months.indexOf(since[2] ?? ''), Number(since[1])) : 0
      const messages = selected?.messages ?? []
      const uids = messages.map(({ uid }) => uid)
      const wanted = inSet(/UID ([\d:*,]+)/i.exec(criteria)?.[1] ?? '1:*', uids)
      const found = messages.filter(({ uid, date }) => wanted.has(uid) && date.getTime() >= from)
      say(`* SEARCH${found.map(({ uid }) => ` ${uid}`).join('')}`)
      say(`${tag} OK done`)
    }

    function select(tag: string, name: string, isReadOnly: boolean): void {
      selected = folders.get(unquoted(name)) ?? null
      if (!selected) return void say(`${tag} NO no such folder`)
      const { messages, uidValidity } = selected
      say(`* ${messages.length} EXISTS`)
      say('* FLAGS (\\Seen \\Flagged)')
      say(`* OK [UIDVALIDITY ${uidValidity}] valid`)
      say(`* OK [UIDNEXT ${(messages.at(-1)?.uid ?? 0) + 1}] next`)
      say(`${tag} OK [${isReadOnly ? 'READ-ONLY' : 'READ-WRITE'}] done`)
    }

    function list(tag: string, args: string): void {
      if (args === '"" ""') say('* LIST (\\Noselect) "/" ""')
      else for (const { path, attributes } of folders.values()) say(`* LIST (${attributes.join(' ')}) "/" "${path}"`)
      say(`${tag} OK done`)
    }

    function obey(line: string): void {
      if (loginTag !== null) {
        const [, user = '', pass = ''] = Buffer.from(line, 'base64').toString().split('\0')
        login(loginTag, user, pass)
        loginTag = null
        return
      }
      const [, tag = '*', command = '', args = ''] = /^(\S+) ((?:UID )?\S+) ?(.*)$/s.exec(line) ?? []
      const name = command.toUpperCase()
      commands.push(/LOGIN|AUTHENTICATE/.test(name) ? name : `${name} ${args}`.trim())
      if (mode === 'hang') return
      if (name === 'CAPABILITY') {
        say('* CAPABILITY IMAP4rev1 AUTH=PLAIN SASL-IR SPECIAL-USE')
        say(`${tag} OK done`)
      } else if (name === 'LOGIN') {
        const [user = '', pass = ''] = (args.match(/"(?:[^"\\]|\\.)*"|\S+/g) ?? []).map(unquoted)
        login(tag, user, pass)
      } else if (name === 'AUTHENTICATE') {
        loginTag = tag
        const initial = args.split(' ')[1]
        if (initial) obey(initial)
        else say('+ ')
      } else if (name === 'LIST' || name === 'LSUB') list(tag, args)
      else if (name === 'SELECT' || name === 'EXAMINE') select(tag, args, name === 'EXAMINE')
      else if (name === 'UID SEARCH') search(tag, args)
      else if (name === 'UID FETCH') fetch(tag, args.split(' ')[0] ?? '', args)
      else if (name === 'LOGOUT') {
        say('* BYE')
        socket.end(`${tag} OK done\r\n`)
      } else if (name === 'NOOP' || name === 'UNSELECT' || name === 'CLOSE') say(`${tag} OK done`)
      else say(`${tag} BAD not here`)
    }

    socket.on('data', (chunk) => {
      waiting += chunk.toString()
      for (let end = waiting.indexOf('\r\n'); end >= 0; end = waiting.indexOf('\r\n')) {
        const line = waiting.slice(0, end)
        waiting = waiting.slice(end + 2)
        obey(line)
      }
    })
  }

  function folder(path: string): ImapFolder {
    const found = folders.get(path)
    if (!found) throw new Error(`There is no folder ${path}.`)
    return found
  }
  const addFolder = (path: string, attributes: string[] = []): ImapFolder => {
    const added = { path, attributes, uidValidity: 1000 + folders.size, messages: [] }
    folders.set(path, added)
    return added
  }
  addFolder('INBOX')

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return {
    host: '127.0.0.1',
    port: typeof address === 'object' ? (address?.port ?? 0) : 0,
    username,
    password,
    behave: (next) => {
      mode = next
    },
    addFolder,
    folder,
    deliver: (path, raw, { date = new Date('2026-03-01T09:00:00Z'), flags = [] } = {}) => {
      const { messages } = folder(path)
      const uid = (messages.at(-1)?.uid ?? 0) + 1
      messages.push({ uid, raw: Buffer.from(raw), date, flags })
      return uid
    },
    renumber: (path) => {
      const found = folder(path)
      found.uidValidity++
      for (const [index, message] of found.messages.entries()) message.uid = index + 1
    },
    commands,
    connections: () => ({ total, open: sockets.size }),
    close: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy()
        server.close(() => resolve())
      }),
  }
}
