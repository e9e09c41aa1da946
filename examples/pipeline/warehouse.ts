/** Has much data, and gives it away by reference: `node warehouse.ts FOLDER BYTES`. */
import { createServer } from 'vivarium/server'
import { readings } from './readings.ts'

const [folder = '.', bytes = '0'] = process.argv.slice(2)
const total = Number(bytes)

const server = createServer({ name: 'warehouse', version: '1.0.0', references: { blobs: folder } })

server.tool('export_readings', { description: 'All readings, as a data reference' }, (_, ctx) => {
  async function* counted(): AsyncGenerator<Uint8Array> {
    let given = 0
    let told = 0
    for await (const chunk of readings(total)) {
      yield chunk
      given += chunk.length
      if (given < total && given - told < total / 100) continue
      told = given
      ctx.progress(given, { total })
    }
  }
  return ctx.reference(counted(), { mime: 'text/csv', name: 'readings.csv', ttl: '30m' })
})

const { url } = await server.listen()
console.log(url)
