// Writes src/api/schema.gen.d.ts: the types of the API, from the OpenAPI document that the service serves.
import { writeFileSync } from 'node:fs';
import openapiTypescript, { astToString } from 'openapi-typescript';
import { apiFeatures, routes } from '../api/features.ts';
import { openApiDocument } from '../api/openapi/document.ts';

// The names of models and tools are examples in the document, which the types don't depend on.
const catalogue = { models: { list: () => [] }, toolbox: { list: () => [] } };
const document = await openApiDocument(
  { ...apiFeatures, routes },
  { catalogue, version: 'console' },
);
const types = astToString(await openapiTypescript(JSON.stringify(document)));
writeFileSync(new URL('./src/api/schema.gen.d.ts', import.meta.url), types);
