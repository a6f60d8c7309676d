// Where the pages are: #/, #/run/ID, #/run/ID/client/NUMBER, #/compare/ID,ID.

export const runAddress = (id) => `#/run/${encodeURIComponent(id)}`;
export const clientAddress = (id, client) => `${runAddress(id)}/client/${client}`;
export const compareAddress = (ids) => `#/compare/${ids.map(encodeURIComponent).join(",")}`;
