// A listener module to copy. Try it: ACCORD_LISTENERS=./src/extensions.example.mjs npm start
// It refuses sources called "Test", and tells what was created on standard error.

/** @type {import('./extensions.ts').Extension} */
export default function register(events) {
  // Before a write: a thrown Veto rolls it back, and the caller gets 403 `event_vetoed` with the reason.
  events.on('settings.source.create.before', (event) => {
    if (event.input.name.trim().toLowerCase() === 'test')
      throw new events.Veto('Sources called "Test" are not wanted here.')
  })

  // After a write is committed: `*` stands for one segment. A failure here is logged and stops nothing.
  events.on('settings.*.create.after', ({ name, entity, actor }) => {
    process.stderr.write(`${name}: ${entity.name}, by ${actor.name}\n`)
  })
}
