/** Resources: text, bytes, a template, and one that changes while it is watched. */
import type { Server } from 'vivarium/server'
import { pixel } from './assets.ts'

export function addResources(server: Server): void {
  server.resource(
    'test://static-text',
    { name: 'Static text', description: 'A text that never changes', mimeType: 'text/plain' },
    () => 'This is the content of the static text resource.',
  )

  server.resource(
    'test://static-binary',
    { name: 'Static binary', description: 'A picture of one red pixel', mimeType: 'image/png' },
    () => Uint8Array.from(atob(pixel), char => char.charCodeAt(0)),
  )

  server.resource(
    'test://template/{id}/data',
    {
      name: 'Data by id',
      description: 'Some data for any id',
      mimeType: 'application/json',
      complete: { id: value => ['123', '456', '789'].filter(id => id.startsWith(value)) },
    },
    ({ id }) => JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }),
  )

  addWatched(server)
}

function addWatched(server: Server): void {
  const uri = 'test://watched-resource'
  let version = 1

  server.resource(
    uri,
    { name: 'Watched resource', description: 'Changes whenever test_trigger_resource_update is called', mimeType: 'text/plain' },
    () => `Version ${version} of the watched resource`,
  )

  server.tool('test_trigger_resource_update', { description: `Changes ${uri} and tells those who watch it` }, () => {
    version++
    server.resourceUpdated(uri)
    return `Now at version ${version}`
  })
}
