import de.bwaldvogel.mongo.MongoDatabase;
import de.bwaldvogel.mongo.backend.CollectionOptions;
import de.bwaldvogel.mongo.backend.Index;
import de.bwaldvogel.mongo.backend.IndexKey;
import de.bwaldvogel.mongo.backend.h2.H2Backend;
import de.bwaldvogel.mongo.backend.h2.H2Collection;
import de.bwaldvogel.mongo.backend.h2.H2Database;
import de.bwaldvogel.mongo.bson.Document;
import de.bwaldvogel.mongo.wire.message.MongoMessage;
import java.util.List;
import org.h2.mvstore.MVStore;

/** The library's H2 backend with indexes that are used, counts that are right, and a store that can be committed before each reply. */
final class StandInBackend extends H2Backend {

    private final boolean commitEveryWrite;

    StandInBackend(MVStore store, boolean commitEveryWrite) {
        super(store);
        this.commitEveryWrite = commitEveryWrite;
    }

    // Called by the superclass's constructor, before this class's fields are set: it uses none of them.
    @Override
    protected MongoDatabase openOrCreateDatabase(String name) {
        MVStore store = getMvStore();
        // Anonymous on purpose: H2Database's constructor calls these methods, and what an anonymous class captures is set before that.
        return new H2Database(name, store, getCursorRegistry()) {
            @Override
            protected H2Collection openOrCreateCollection(String collection, CollectionOptions options) {
                String full = getFullCollectionNamespace(collection);
                return new StandInCollection(this, collection, options, store.openMap("databases." + full), store.openMap("meta." + full), cursorRegistry);
            }

            @Override
            protected Index<Object> openOrCreateUniqueIndex(String collection, String index, List<IndexKey> keys, boolean sparse) {
                return new UniqueIndex(index, keys, sparse);
            }
        };
    }

    @Override
    public Document handleMessage(MongoMessage message) {
        try {
            Document response = super.handleMessage(message);
            if (response.containsKey("writeErrors") && message.getDocument().containsKey("insert")) {
                countInserted(message.getDocument(), response);
            }
            return response;
        } finally {
            if (commitEveryWrite && getMvStore().hasUnsavedChanges()) {
                commit();
            }
        }
    }

    /** The library answers with how many were sent; what was inserted is what came before the first error, or, unordered, all without one. */
    private static void countInserted(Document command, Document response) {
        List<?> errors = (List<?>) response.get("writeErrors");
        int sent = ((List<?>) command.get("documents")).size();
        boolean ordered = !Boolean.FALSE.equals(command.get("ordered"));
        response.put("n", ordered ? ((Document) errors.get(0)).get("index") : Integer.valueOf(sent - errors.size()));
    }
}
