/** Serves the memory on stdio: `node server.ts [FILE]`, or with MEMORY_FILE set. */
import { openMemory } from './memory.ts'

await using memory = openMemory({ file: process.argv[2] ?? process.env['MEMORY_FILE'] ?? 'memory.db' })
await memory.server.stdio()
