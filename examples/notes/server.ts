/** Serves the notes on stdio. NOTES_STORE: where checkpoints are known by after a restart, such as `sqlite:notes.db`. */
import { createNotes } from './notes.ts'

const store = process.env['NOTES_STORE']
await using server = createNotes(store === undefined ? {} : { store })
await server.stdio()
