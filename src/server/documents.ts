/** What a server has to show beside its endpoint, for every way of serving it over HTTP. */
import type { Engine } from '../engine/engine.ts'
import type { OwnDocument } from '../transports/http/document.ts'

export const documents = new WeakMap<Engine, OwnDocument>()
